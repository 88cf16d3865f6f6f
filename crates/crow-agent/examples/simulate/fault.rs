//! The faults, and how often a seed injects each.

use crow_testkit::SeededRandom;

/// A fault at a boundary of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    ProcessKilled,
    ModelHangs,
    ModelStalls,
    ModelReset,
    ModelTruncated,
    ModelBusy,
    ModelFails,
    ModelOverflow,
    ModelGarbage,
    ModelRepeats,
    ModelUnknownTool,
    ModelBadArguments,
    ToolFails,
    ToolHangs,
    ToolPanics,
    ClientDies,
    ClientStopsReading,
    ClientNeverAnswers,
    ClientAnswersTwice,
    ClientAnswersNonsense,
    ClientSendsGarbage,
    ClientCancels,
    DiskSlow,
    DiskFull,
    DiskLocked,
    DiskBroken,
    ChildNotStarted,
    ChildDies,
    ChildHangs,
    ChildLies,
    ChildAnswersTwice,
}

impl Fault {
    pub(crate) const ALL: [Self; 31] = [
        Self::ProcessKilled,
        Self::ModelHangs,
        Self::ModelStalls,
        Self::ModelReset,
        Self::ModelTruncated,
        Self::ModelBusy,
        Self::ModelFails,
        Self::ModelOverflow,
        Self::ModelGarbage,
        Self::ModelRepeats,
        Self::ModelUnknownTool,
        Self::ModelBadArguments,
        Self::ToolFails,
        Self::ToolHangs,
        Self::ToolPanics,
        Self::ClientDies,
        Self::ClientStopsReading,
        Self::ClientNeverAnswers,
        Self::ClientAnswersTwice,
        Self::ClientAnswersNonsense,
        Self::ClientSendsGarbage,
        Self::ClientCancels,
        Self::DiskSlow,
        Self::DiskFull,
        Self::DiskLocked,
        Self::DiskBroken,
        Self::ChildNotStarted,
        Self::ChildDies,
        Self::ChildHangs,
        Self::ChildLies,
        Self::ChildAnswersTwice,
    ];

    /// The probability in percent, per occasion, where a seed has the fault.
    fn percent(self) -> u64 {
        match self {
            Self::DiskFull | Self::DiskLocked | Self::DiskBroken | Self::DiskSlow => 5,
            Self::ClientDies | Self::ClientStopsReading | Self::ToolPanics => 10,
            Self::ModelHangs
            | Self::ModelStalls
            | Self::ModelReset
            | Self::ModelTruncated
            | Self::ModelBusy
            | Self::ModelFails
            | Self::ModelOverflow
            | Self::ModelGarbage
            | Self::ModelRepeats
            | Self::ModelUnknownTool
            | Self::ModelBadArguments
            | Self::ToolFails
            | Self::ToolHangs
            | Self::ClientSendsGarbage => 15,
            Self::ProcessKilled => 70,
            Self::ClientNeverAnswers
            | Self::ClientAnswersTwice
            | Self::ClientAnswersNonsense
            | Self::ClientCancels
            | Self::ChildNotStarted
            | Self::ChildDies
            | Self::ChildHangs
            | Self::ChildLies
            | Self::ChildAnswersTwice => 25,
        }
    }
}

/// The faults of one seed. Most seeds have a few: a run with all of them seldom gets far.
#[derive(Debug, Clone)]
pub(crate) struct FaultPlan(Vec<Fault>);

impl FaultPlan {
    pub(crate) fn draw(random: &mut SeededRandom) -> Self {
        let percent = random.choose(&[0, 8, 25, 60]);
        let mut faults: Vec<Fault> = Fault::ALL.into_iter().filter(|_| random.is_chosen(percent)).collect();
        // What matters most is in every second seed.
        if random.is_chosen(50) && !faults.contains(&Fault::ProcessKilled) {
            faults.push(Fault::ProcessKilled);
        }
        Self(faults)
    }

    /// Whether the next occasion for a fault has it.
    pub(crate) fn has_fault(&self, fault: Fault, random: &mut SeededRandom) -> bool {
        self.0.contains(&fault) && random.is_chosen(fault.percent())
    }

    pub(crate) fn to_text(&self) -> String {
        let names: Vec<String> = self.0.iter().map(|fault| format!("{fault:?}")).collect();
        names.join(" ")
    }
}
