//! Which system calls a command may not make: those that lead around the rules for files, to the network when that is
//! closed, and those that change the whole machine when root makes them.

use std::collections::BTreeMap;

use crow_core::NetworkAccess;
use nix::unistd::{getegid, geteuid};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// Refused as forbidden. Looking into other programs is not among them: Landlock refuses it beyond the command's
/// own, and debuggers go on working.
const FORBIDDEN: &[libc::c_long] = &[
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
    // Code in the kernel, and its usual ways in.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // Keys that the kernel keeps for the person.
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

/// Answered as if the kernel did not have them, because programs know what to do then. The first three do what other
/// calls do without any filter seeing it; flags of the last are out of a filter's sight.
const ABSENT: &[libc::c_long] =
    &[libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];

/// TIOCSTI and TIOCLINUX: both put input into a terminal, where a shell of the person's would run it. The C libraries
/// do not agree on the type of the one and do not know the other.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];

/// Kinds of sockets that a closed network leaves: between programs of this machine, and asking the kernel about
/// interfaces, without which name lookups of local names fail.
const SOCKETS_LEFT: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Tells whether filters can be made for this processor.
pub(super) fn is_supported_arch() -> bool {
    target_arch().is_some()
}

fn target_arch() -> Option<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).ok()
}

/// What the filters are to hold beside what they always do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyscallRules {
    pub(super) network: NetworkAccess,
    /// No other program can be spoken to through a socket: nothing else hides those that obey.
    pub(super) unix_sockets_closed: bool,
    /// No file gets another owner, attributes, or a mode that gives others rights: nothing else keeps those outside as
    /// they are.
    pub(super) attributes_bounded: bool,
}

/// Mode bits that let others write or act as the owner.
const MODES_BOUNDED: [u64; 3] = [0o4000, 0o2000, 0o0002];

/// Calls that change attributes of files beside modes and times. Programs know what to do where a file system has none.
const ATTRIBUTE_CALLS: &[libc::c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// FS_IOC_SETFLAGS, its form for 32 bits, FS_IOC_SETVERSION and FS_IOC_FSSETXATTR.
const ATTRIBUTE_REQUESTS: [u64; 4] = [0x4008_6602, 0x4004_6602, 0x4008_7602, 0x401c_5820];

/// Calls that change the owner of a file, with the place of the user among their arguments; the group follows.
const OWNER_CALLS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chown, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_lchown, 1),
    (libc::SYS_fchown, 1),
    (libc::SYS_fchownat, 2),
];

/// Calls that change the mode of a file, with the place of the mode among their arguments.
const MODE_CALLS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// The same number everywhere; the C libraries do not know it yet.
const FCHMODAT2: libc::c_long = 452;

/// The kind of a socket without its flags.
const SOCKET_KIND: u64 = 0xf;

/// Makes the filters; `None` on a processor that none can be made for.
pub(super) fn build_seccomp_filters(rules: SyscallRules) -> Result<Option<Vec<BpfProgram>>, BackendError> {
    let Some(machine) = target_arch() else { return Ok(None) };
    let mut forbidden: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN.iter().map(|&call| (call, Vec::new())).collect();
    let mut requests = Vec::new();
    let of_files = if rules.attributes_bounded { &ATTRIBUTE_REQUESTS[..] } else { &[] };
    for &request in TERMINAL_INPUT.iter().chain(of_files) {
        requests.push(SeccompRule::new(vec![argument_condition(1, SeccompCmpOp::Eq, request)?])?);
    }
    forbidden.insert(libc::SYS_ioctl, requests);
    // In a name space of its own a program has rights over the kernel that nobody gave it.
    let new_user = u64::try_from(libc::CLONE_NEWUSER).unwrap_or_default();
    let clone = argument_condition(0, SeccompCmpOp::MaskedEq(new_user), new_user)?;
    forbidden.insert(libc::SYS_clone, vec![SeccompRule::new(vec![clone])?]);
    // The limits of another program can end it, and the warden is one.
    let of_another = argument_condition(0, SeccompCmpOp::Ne, 0)?;
    forbidden.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![of_another])?]);
    let number = |value: libc::c_int| u64::try_from(value).unwrap_or_default();
    let mut sockets = Vec::new();
    if rules.unix_sockets_closed {
        let unix = || argument_condition(0, SeccompCmpOp::Eq, number(libc::AF_UNIX));
        sockets.push(SeccompRule::new(vec![unix()?])?);
        // Of a pair, this kind can still be sent elsewhere.
        let datagram = argument_condition(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), number(libc::SOCK_DGRAM))?;
        forbidden.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![unix()?, datagram])?]);
    }
    let mut unsupported = BTreeMap::new();
    if rules.attributes_bounded {
        forbidden.extend(owner_rules()?);
        unsupported.extend(ATTRIBUTE_CALLS.iter().map(|&call| (call, Vec::new())));
        for &(call, place) in MODE_CALLS {
            let bits = MODES_BOUNDED.into_iter().map(|bit| {
                SeccompRule::new(vec![argument_condition(place, SeccompCmpOp::MaskedEq(bit), bit)?])
            });
            forbidden.insert(call, bits.collect::<Result<_, _>>()?);
        }
    }
    if rules.network == NetworkAccess::Closed {
        let others =
            SOCKETS_LEFT.into_iter().map(|kind| argument_condition(0, SeccompCmpOp::Ne, number(kind)));
        sockets.push(SeccompRule::new(others.collect::<Result<_, _>>()?)?);
    }
    if !sockets.is_empty() {
        forbidden.insert(libc::SYS_socket, sockets);
    }
    let absent = ABSENT.iter().map(|&call| (call, Vec::new())).collect();
    let mut known = vec![
        compile_filter(forbidden, libc::EPERM, machine)?,
        compile_filter(absent, libc::ENOSYS, machine)?,
    ];
    if !unsupported.is_empty() {
        known.push(compile_filter(unsupported, libc::EOPNOTSUPP, machine)?);
    }
    known.push(unknown_call_filter());
    Ok(Some(known))
}

/// Lets files only be given to whoever has them: programs that copy do that.
fn owner_rules() -> Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
    let unchanged = u64::from(u32::MAX);
    let (user, group) = (u64::from(geteuid().as_raw()), u64::from(getegid().as_raw()));
    let rule = |argument: u8, own: u64| {
        let others = [unchanged, own].map(|id| argument_condition(argument, SeccompCmpOp::Ne, id));
        SeccompRule::new(others.into_iter().collect::<Result<_, _>>()?)
    };
    let of_call = |&(call, at): &(libc::c_long, u8)| Ok((call, vec![rule(at, user)?, rule(at + 1, group)?]));
    OWNER_CALLS.iter().map(of_call).collect()
}

/// Compares half of an argument: the kernel itself looks at no more of these.
fn argument_condition(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

fn compile_filter(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
    machine: TargetArch,
) -> Result<BpfProgram, BackendError> {
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    SeccompFilter::new(calls, SeccompAction::Allow, answer, machine)?.try_into()
}

/// Newer calls do what the ones above do, and programs know what to do where they are missing. Some kernels also know
/// every call by a second, much higher number, which the other filters would let through.
fn unknown_call_filter() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const ANSWER: u16 = 0x06;
    let step = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    vec![
        step(LOAD, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, FIRST_UNKNOWN),
        step(ANSWER, 0, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()).into()),
        step(ANSWER, 0, SeccompAction::Allow.into()),
    ]
}

/// What came after `mseal` has not been looked at here. Processors that filters are made for number these calls alike.
const FIRST_UNKNOWN: u32 = 463;
