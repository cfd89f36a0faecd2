"""What a failed write says about a disk."""

from __future__ import annotations

import errno

DISK_TROUBLES = {
    errno.ENOSPC: "is full: free space there",
    errno.EDQUOT: "is full by your quota: free space there",
    errno.EFBIG: "takes no file so large: raise the limit of file sizes (ulimit -f)",
    errno.EROFS: "is read-only: make it writable",
}
"""The trouble and the cure, by the error's number."""
