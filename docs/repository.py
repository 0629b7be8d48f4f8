"""The web address of the repository that the pages are built from."""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import metadata
from pathlib import Path

__all__ = ["repository", "web_address"]

_REMOTE = re.compile(r"(?:ssh://)?git@(?P<host>[\w.-]+)[:/](?P<path>\S+?)(?:\.git)?/?")


def web_address(remote: str) -> str | None:
    """Return the address at which a browser finds a git remote; None where it is none of the web, as a folder is not.

    A name and a password before the host are no part of it.
    """
    if web := re.fullmatch(r"https?://(?:[^/@\s]*@)?(?P<at>[^/@\s]+/\S+?)(?:\.git)?/?", remote):
        return f"https://{web['at']}"
    found = _REMOTE.fullmatch(remote)
    return f"https://{found['host']}/{found['path']}" if found else None


def repository(checkout: Path) -> str | None:
    """Return the address that the package declares, else that of the checkout's origin; None where neither is one."""
    for url in metadata("minmaxcon").get_all("Project-URL") or ():
        name, _, address = url.partition(", ")
        if name == "Repository":
            return address
    try:
        asked = ["git", "-C", str(checkout), "remote", "get-url", "origin"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - fixed words
    except (OSError, subprocess.SubprocessError):
        return None  # built from a source distribution
    return web_address(told.stdout.strip())
