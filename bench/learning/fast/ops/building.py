"""Builds rows.c as a shared library, once per machine and version, in a folder that only its user can write to.

The folder is `compiled` in the user's cache, with mode 0700. The name of a library contains a hash of everything it was
built from and a hash of its own content, so incomplete, damaged or outdated files are never loaded. The result of
checking its sums is stored beside it. Without such a folder, each process builds its own library.

Nothing here imports torch, so that `bench status` can tell quickly whether there is a library.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import platformdirs
from filelock import FileLock

COMPILER_VARIABLE = "BENCH_CC"
SOURCE = Path(__file__).with_name("rows.c")
FLAGS = ["-O3", "-mavx2", "-mfma", "-shared", "-fPIC"]
BUILD_SECONDS = 60
PASSED = "passed"


class CannotBuildError(Exception):
    """There is no library; the message says why."""


@dataclass(frozen=True)
class Recipe:
    """Everything that a library is built from."""

    command: str  # the compiler, from `BENCH_CC`

    @classmethod
    def here(cls) -> Recipe:
        """The recipe for this machine."""
        command = os.environ.get(COMPILER_VARIABLE, "cc")
        if command == "none":
            raise CannotBuildError(f"{COMPILER_VARIABLE}=none")
        return cls(command)

    @cached_property
    def words(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise CannotBuildError(f"{COMPILER_VARIABLE}={self.command} cannot be read: {error}") from None
        if not words or shutil.which(words[0]) is None:
            raise CannotBuildError(
                f"no C compiler: '{self.command}' was not found; install one or set {COMPILER_VARIABLE}"
            )
        return words

    @cached_property
    def key(self) -> str:
        """A hash of source, compiler version, flags and processor type."""
        said = self.run(["--version"], check=False)
        facts = [self.command, said.stdout, said.stderr, *FLAGS, platform.system(), platform.machine()]
        return hashlib.sha256("\0".join([*facts, SOURCE.read_text(encoding="utf-8")]).encode()).hexdigest()[:32]

    def run(self, more: list[str], check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the compiler; errors are one line."""
        words = [*self.words, *more]
        try:
            return subprocess.run(
                words, check=check, capture_output=True, text=True, timeout=BUILD_SECONDS, stdin=subprocess.DEVNULL
            )
        except subprocess.CalledProcessError as error:
            raise CannotBuildError(f"{self.command} failed: {' '.join(error.stderr.split())[:200]}") from None
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise CannotBuildError(f"{self.command} gave nothing to use: {error}") from None

    def build(self, folder: Path) -> Path:
        """Build a library in this folder."""
        made = folder / "rows.so"
        self.run([*FLAGS, str(SOURCE), "-o", str(made)])
        if not made.is_file():
            raise CannotBuildError(f"{self.command} produced no output file")
        return made


def cache_folder() -> Path:
    return platformdirs.user_cache_path("augbench", appauthor=False) / "compiled"


def objection(folder: Path) -> str | None:
    """Why code in this folder must not be loaded; None if only its user can have written it."""
    if not hasattr(os, "geteuid"):
        return "its owner cannot be told on this system"
    user, above = os.geteuid(), folder.parent.resolve()
    for place in (folder, above, *above.parents):
        found = place.lstat()
        if place == folder and not stat.S_ISDIR(found.st_mode):
            return f"{place} is not a folder"
        if found.st_uid not in ((user,) if place == folder else (user, 0)):
            return f"{place} belongs to another user"
        if found.st_mode & stat.S_IWOTH and (place == folder or not found.st_mode & stat.S_ISVTX):
            return f"{place} can be written to by others"
        if found.st_mode & stat.S_IWGRP and (place == folder or not (found.st_mode & stat.S_ISVTX or own_group(found))):
            return f"{place} can be written to by its group"
    return None


def own_group(found: os.stat_result) -> bool:
    """Whether the group belongs to the user alone and has the same name, as on many systems."""
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(found.st_gid), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def private_folder() -> Path:
    """The cache folder, created if necessary; raises OSError if there is no safe one."""
    folder = cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if reason := objection(folder):
        raise PermissionError(reason)
    return folder


@dataclass(frozen=True)
class Library:
    """A built library, and where the result of its check is stored."""

    path: Path

    def verdict_file(self, torch_version: str, capability: str) -> Path:
        """The sums are compared with those of one version of torch on one type of processor."""
        return self.path.with_name(f"{self.path.stem}.{torch_version}.{capability}.check")

    def verdict(self, torch_version: str, capability: str) -> str | None:
        try:
            return self.verdict_file(torch_version, capability).read_text(encoding="utf-8") or None
        except (OSError, UnicodeDecodeError):
            return None

    def keep_verdict(self, verdict: str, torch_version: str, capability: str) -> None:
        """Write the verdict atomically, so that no process reads half of it; if that fails, the check is repeated."""
        place = self.verdict_file(torch_version, capability)
        draft = place.with_name(f"{place.name}.{os.getpid()}")
        try:
            draft.write_text(verdict, encoding="utf-8")
            draft.replace(place)
        except OSError:
            draft.unlink(missing_ok=True)


def content_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def kept_library(folder: Path, key: str) -> Library | None:
    """The library with this key, if its content matches its name."""
    for path in sorted(folder.glob(f"{key}-*.so")):
        try:
            if path.stem == f"{key}-{content_hash(path)}":
                return Library(path)
        except OSError:
            continue
    return None


def build_into(folder: Path, recipe: Recipe) -> Library:
    """Build a library and rename it atomically; the caller holds the lock."""
    for left in (*folder.glob(f"build-{recipe.key}-*"), *folder.glob(f"{recipe.key}-*")):  # left by interrupted builds
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f"build-{recipe.key}-") as draft:
        made = recipe.build(Path(draft))
        made.chmod(0o600)
        place = folder / f"{recipe.key}-{content_hash(made)}.so"
        made.replace(place)
    return Library(place)


def lock_for(folder: Path, key: str) -> FileLock:
    """A lock for building; other processes wait as long as a build may take, and then continue without the folder."""
    return FileLock(folder / f"{key}.lock", timeout=BUILD_SECONDS, mode=0o600)
