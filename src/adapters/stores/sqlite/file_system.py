"""Which file system a file is on: those of a network do not keep SQLite's locks, nor the memory that a log shares.

Linux says it (statfs(2)). On another system nothing is known, and nothing is refused.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

_FUSE: Final = 0x65735546
_REMOTE: Final = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB",
    0x01021997: "9p",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x0000564C: "NCP",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x01161970: "GFS2",
    0x7461636F: "OCFS2",
    0x19830326: "BeeGFS",
    0xAAD7AAEA: "PanFS",
    0x20030528: "OrangeFS",
    0x786F4256: "a folder of the host (vboxsf)",
    0xBACBACBC: "a folder of the host (vmhgfs)",
    0x7C7C6673: "a folder of the host (prl_fs)",
}
"""By `f_type` (linux/magic.h and the file systems' own)."""

_LOCAL_FUSE: Final = frozenset(
    {
        "fuseblk", "fuse.fuse-overlayfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.ext2", "fuse.ext4", "fuse.apfs",
        "fuse.bindfs", "fuse.mergerfs", "fuse.unionfs", "fuse.gocryptfs", "fuse.cryfs", "fuse.encfs", "fuse.veracrypt",
        "fuse.lxcfs", "fuse.zfs", "fuse.bcachefs", "fuse.squashfuse",
    }
)  # fmt: skip
"""Of a disk of this machine. Every other may be remote (sshfs, s3fs, gcsfuse, rclone, GlusterFS, virtiofs)."""


def remote_file_system(path: Path) -> str | None:
    """The name of the network file system that the file is on, or would be; None where it is on none.

    Looks at the file, if it is there, and at the next folder above it that is, behind all links.
    """
    real = Path(os.path.realpath(path))
    folder = next(each for each in real.parents if each.exists())
    for place in (real, folder) if real.exists() else (folder,):
        kind = _f_type(place)
        if kind == _FUSE:
            name = _mounted(place)
            if name not in _LOCAL_FUSE:
                return name or "FUSE"
        elif kind in _REMOTE:
            return _REMOTE[kind]
    return None


def _f_type(path: Path) -> int | None:
    """The first member of `struct statfs`, a long; None where it is not known."""
    if not sys.platform.startswith("linux"):
        return None
    answer = ctypes.create_string_buffer(1024)
    try:
        failed = ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), answer)
    except (OSError, AttributeError):  # a system without such a call
        return None
    return None if failed else ctypes.c_long.from_buffer(answer).value & 0xFFFFFFFF


def _mounted(path: Path) -> str | None:
    """The type of the mount that the path is on (proc_pid_mountinfo(5)): `fuse.sshfs`, `fuseblk`."""
    state = path.stat()
    device = f"{os.major(state.st_dev)}:{os.minor(state.st_dev)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        if before.split()[2:3] == [device] and after:
            return after.split()[0]
    return None
