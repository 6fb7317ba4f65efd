"""Exits of containers, seen in milliseconds: `ExitWatcher`; and the exit file that a dead conmon owes."""

from .place import Place
from .proc import exit_dir_of, read_exit_file, write_exit_file
from .watcher import CONMON_DIED, EXIT_FILE, LOST, ExitWatcher, Report

__all__ = [
    "CONMON_DIED",
    "EXIT_FILE",
    "LOST",
    "ExitWatcher",
    "Place",
    "Report",
    "exit_dir_of",
    "read_exit_file",
    "write_exit_file",
]
