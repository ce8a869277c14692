"""The driver's version: the first line is what an H200's open kernel module writes, the others follow known forms."""

from pathlib import Path

import pytest

from gatepost.engines.nvidia import driver_version

GCC = "\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n"


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)  ",
            "580.159.04",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024", "535.183.01"),
        ("NVRM version: NVIDIA UNIX aarch64 Kernel Module  470.82  Wed Sep 27 2021", "470.82"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.15", "570.86.15"),
        ("NVRM version: none", None),
        ("", None),
    ],
)
def test_the_kernel_module_tells(tmp_path: Path, line: str, version: str | None) -> None:
    module = tmp_path / "version"
    module.write_text(line + GCC)
    assert driver_version(module, ("no-such-command",)) == version


@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo 580.159.04", "580.159.04"),
        ("echo 580.159.04; echo 580.159.04", "580.159.04"),  # a line for each device
        ("echo 580.159.04; echo 570.86.15", None),
        ("echo 'No devices were found'", None),
        ("echo '[N/A]'", None),
        ("true", None),
        ("echo 580.159.04; exit 9", None),
        ("cat; echo 580.159.04", "580.159.04"),  # it must not read the commands to the engine
        (r"printf '\377\n'", None),
    ],
)
def test_the_command_is_asked_where_the_module_is_hidden(tmp_path: Path, script: str, version: str | None) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    assert driver_version(tmp_path / "absent", (str(command),)) == version


def test_where_there_is_no_driver_it_is_unknown(tmp_path: Path) -> None:
    assert driver_version(tmp_path / "absent", ("no-such-command",)) is None
    assert driver_version(tmp_path, ("no-such-command",)) is None, "a folder is no module"
