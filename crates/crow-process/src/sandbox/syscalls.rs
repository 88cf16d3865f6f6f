//! The system calls that a command may not make: those that bypass the rules for files, that use the network when it
//! is closed, and that change the whole machine when root makes them.

use std::collections::BTreeMap;

use crow_core::NetworkAccess;
use nix::unistd::{getegid, geteuid};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Answered with EPERM. Inspecting other programs is not among them: Landlock restricts it to the command's own
/// processes, and debuggers keep working.
const FORBIDDEN_CALLS: &[libc::c_long] = &[
    // Another view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    // Code in the kernel, and common ways to get it there.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // Keys that the kernel stores for the user.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine as a whole.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
];

/// Answered with ENOSYS, because programs have a fallback then. The first three do what other calls do without a
/// filter seeing it; a filter cannot see the flags of the last.
const UNIMPLEMENTED_CALLS: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// TIOCSTI and TIOCLINUX: both insert input into a terminal, where the user's shell would run it. The C libraries
/// disagree on the type of the one and do not define the other.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Socket families that remain without network access: local sockets, and netlink, without which lookups of local
/// names fail.
const ALLOWED_SOCKET_FAMILIES: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Whether filters can be built for this processor.
pub(super) fn is_supported_arch() -> bool {
    target_arch().is_some()
}

fn target_arch() -> Option<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).ok()
}

/// The rules that apply in addition to the fixed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyscallRules {
    pub(super) network: NetworkAccess,
    /// Blocks Unix sockets: nothing else hides the sockets of other programs.
    pub(super) blocks_unix_sockets: bool,
    /// Blocks changes of owner, of attributes, and to modes that give others rights: nothing else protects files
    /// outside the writable places from these.
    pub(super) restricts_attributes: bool,
}

/// Mode bits that let others write or act as the owner.
const RESTRICTED_MODE_BITS: [u64; 3] = [0o4000, 0o2000, 0o0002];

/// Calls that change attributes of files other than modes and times. Programs have a fallback for file systems
/// without attributes.
const ATTRIBUTE_CALLS: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// FS_IOC_SETFLAGS, its 32-bit form, FS_IOC_SETVERSION and FS_IOC_FSSETXATTR.
const ATTRIBUTE_REQUESTS: [u64; 4] = [0x4008_6602, 0x4004_6602, 0x4008_7602, 0x401c_5820];

/// Calls that change the owner of a file, with the index of the user argument; the group follows it.
const OWNER_CALLS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, 1),
    (libc::SYS_fchown, 1),
    (libc::SYS_fchownat, 2),
];

/// Calls that change the mode of a file, with the index of the mode argument.
const MODE_CALLS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// The same number on every processor; the C libraries do not define it yet.
const FCHMODAT2: libc::c_long = 452;

/// The kind of a socket without its flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// Builds the filters; `None` on a processor that is not supported.
pub(super) fn build_seccomp_filters(rules: SyscallRules) -> Result<Option<Vec<BpfProgram>>, BackendError> {
    let Some(arch) = target_arch() else { return Ok(None) };
    let mut forbidden: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN_CALLS.iter().map(|&call| (call, Vec::new())).collect();
    let mut requests = Vec::new();
    let attribute_requests = if rules.restricts_attributes { &ATTRIBUTE_REQUESTS[..] } else { &[] };
    for &request in TERMINAL_INPUT.iter().chain(attribute_requests) {
        requests.push(SeccompRule::new(vec![argument_condition(1, SeccompCmpOp::Eq, request)?])?);
    }
    forbidden.insert(libc::SYS_ioctl, requests);
    // In a new user namespace a program has rights over the kernel that it was not given.
    let new_user = u64::try_from(libc::CLONE_NEWUSER).unwrap_or_default();
    let clone_condition = argument_condition(0, SeccompCmpOp::MaskedEq(new_user), new_user)?;
    forbidden.insert(libc::SYS_clone, vec![SeccompRule::new(vec![clone_condition])?]);
    // The limits of another program can end it, and the supervisor is one.
    let other_process = argument_condition(0, SeccompCmpOp::Ne, 0)?;
    forbidden.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other_process])?]);
    let number = |value: libc::c_int| u64::try_from(value).unwrap_or_default();
    let mut socket_rules = Vec::new();
    if rules.blocks_unix_sockets {
        let unix = || argument_condition(0, SeccompCmpOp::Eq, number(libc::AF_UNIX));
        socket_rules.push(SeccompRule::new(vec![unix()?])?);
        // One end of a datagram pair can still send elsewhere.
        let datagram =
            argument_condition(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), number(libc::SOCK_DGRAM))?;
        forbidden.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![unix()?, datagram])?]);
    }
    let mut unsupported = BTreeMap::new();
    if rules.restricts_attributes {
        forbidden.extend(owner_rules()?);
        unsupported.extend(ATTRIBUTE_CALLS.iter().map(|&call| (call, Vec::new())));
        for &(call, argument) in MODE_CALLS {
            let bits = RESTRICTED_MODE_BITS.into_iter().map(|bit| {
                SeccompRule::new(vec![argument_condition(argument, SeccompCmpOp::MaskedEq(bit), bit)?])
            });
            forbidden.insert(call, bits.collect::<Result<_, _>>()?);
        }
    }
    if rules.network == NetworkAccess::Denied {
        let other_families = ALLOWED_SOCKET_FAMILIES
            .into_iter()
            .map(|kind| argument_condition(0, SeccompCmpOp::Ne, number(kind)));
        socket_rules.push(SeccompRule::new(other_families.collect::<Result<_, _>>()?)?);
    }
    if !socket_rules.is_empty() {
        forbidden.insert(libc::SYS_socket, socket_rules);
    }
    let absent = UNIMPLEMENTED_CALLS.iter().map(|&call| (call, Vec::new())).collect();
    let mut filters =
        vec![compile_filter(forbidden, libc::EPERM, arch)?, compile_filter(absent, libc::ENOSYS, arch)?];
    if !unsupported.is_empty() {
        filters.push(compile_filter(unsupported, libc::EOPNOTSUPP, arch)?);
    }
    filters.push(unknown_call_filter());
    Ok(Some(filters))
}

/// Permits `chown` only to the current owner: programs that copy files do that.
fn owner_rules() -> Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
    let unchanged = u64::from(u32::MAX);
    let (user, group) = (u64::from(geteuid().as_raw()), u64::from(getegid().as_raw()));
    let rule = |argument: u8, own_id: u64| {
        let conditions = [unchanged, own_id].map(|id| argument_condition(argument, SeccompCmpOp::Ne, id));
        SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
    };
    let of_call = |&(call, at): &(libc::c_long, u8)| Ok((call, vec![rule(at, user)?, rule(at + 1, group)?]));
    OWNER_CALLS.iter().map(of_call).collect()
}

/// Compares half of an argument: filters see no more of these.
fn argument_condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn compile_filter(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
    arch: TargetArch,
) -> Result<BpfProgram, BackendError> {
    let action = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, action, arch)?.try_into()
}

/// Newer calls do what the ones above do, and programs have a fallback where they are missing. Some kernels also
/// accept every call by a second, much higher number, which the other filters would miss.
fn unknown_call_filter() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    vec![
        instruction(LOAD, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 1, FIRST_UNKNOWN_CALL),
        instruction(RETURN, 0, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()).into()),
        instruction(RETURN, 0, SeccompAction::Allow.into()),
    ]
}

/// Calls after `mseal` have not been reviewed. All supported processors number these calls alike.
const FIRST_UNKNOWN_CALL: u32 = 463;
