//! Pages that pass the checks of their steps.

pub(super) const SPEC: &str = "# Feature Specification: Albums

**Status**: Draft

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Make an album (Priority: P1)

A person makes an album.

**Why this priority**: nothing works without it

**Independent Test**: make one and see it

**Acceptance Scenarios**:

1. **Given** no album, **When** one is made, **Then** it is listed

## Requirements *(mandatory)*

### Functional Requirements

- **FR-001**: System MUST list albums

## Success Criteria *(mandatory)*

### Measurable Outcomes

- **SC-001**: An album is made in 5 seconds
";

pub(super) const PLAN: &str = "# Implementation Plan: Albums

## Summary

Albums, in a file.

## Technical Context

**Language/Version**: Rust 1.85
**Primary Dependencies**: none
**Storage**: N/A
**Testing**: cargo test
**Target Platform**: Linux
**Project Type**: cli
**Performance Goals**: 10 ms
**Constraints**: offline
**Scale/Scope**: 1000 albums

## Constitution Check

*GATE: before research.*

- I. Simple: PASS

## Project Structure

```text
src/
```

**Structure Decision**: one crate
";

pub(super) const RESEARCH: &str = "# Research: Albums

## Where are albums stored?

- **Decision**: in a file
- **Rationale**: there are few
- **Alternatives considered**: a database
";

pub(super) const QUICKSTART: &str = "# Quickstart: Albums

Run `albums list`. Each album is on one line.
";

pub(super) const TASKS: &str = "# Tasks: Albums

## Phase 1: Setup

- [ ] T001 Make the crate in Cargo.toml

## Phase 2: User Story 1 - Make (Priority: P1)

- [ ] T002 [P] [US1] Model in src/album.rs
- [ ] T003 [P] [US1] List in src/list.rs
";

pub(super) const CONSTITUTION: &str = "# Albums Constitution

## Core Principles

### I. Simple

A person MUST understand a file within a minute.

## Governance

The maintainers change these rules.

**Version**: 1.0.0 | **Ratified**: 2026-01-02 | **Last Amended**: 2026-01-02
";

pub(super) const CHECKLIST: &str = "# Security Checklist: Albums

- [ ] CHK001 Are the rights to read an album stated? [Gap]
";

/// Replaces the names of pages by their texts, and `\\n` by line ends.
pub(super) fn expand_pages(text: &str) -> String {
    let pages = [
        ("$spec", SPEC),
        ("$plan", PLAN),
        ("$research", RESEARCH),
        ("$quickstart", QUICKSTART),
        ("$tasks", TASKS),
        ("$constitution", CONSTITUTION),
        ("$checklist", CHECKLIST),
    ];
    let text = text.replace("\\n", "\n");
    pages.iter().fold(text, |text, (name, page)| text.replace(name, page))
}
