# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The lines of docs/sockets.md, in programs of their languages, do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from classes import DEFAULT
from recipes import have
from support import LE, PORT, PYTHON, RECEIVER, ROOT, Enabled, Link, call

PAGE = (ROOT / "docs" / "sockets.md").read_text()
PROGRAMS = {
    "c": """
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)argc;
	inet_pton(AF_INET, argv[1], &to.sin_addr);
	LINES
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return 1;
	puts("connected");
	fflush(stdout);
	return getchar() != EOF;
}
""",
    "python": """
import socket, sys
sock = socket.socket()
LINES
sock.connect((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
sys.stdin.read()
""",
    "go": """
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

func main() {
	dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		LINES
		return err
	}}
	if _, err := dialer.Dial("tcp4", os.Args[1]+":"+os.Args[2]); err != nil {
		panic(err)
	}
	fmt.Println("connected")
	io.Copy(io.Discard, os.Stdin)
}
""",
}
LANGUAGES = ["c", "python", pytest.param("go", marks=pytest.mark.soak)]


def lines(language: str, word: str) -> str:
    """Return the example of the page in this language that has a word."""
    found: list[str] = [e for e in re.findall(rf"```{language}\n(.*?)```", PAGE, re.S) if word in e]
    assert len(found) == 1, found
    return found[0]


def command(language: str, word: str, directory: Path) -> list[str]:
    """Make the program; return how it is called."""
    source = PROGRAMS[language].replace("LINES", lines(language, word).rstrip())
    file = directory / f"program.{language.replace('python', 'py')}"
    file.write_text(source)
    program = directory / "program"
    if language == "c":
        call("gcc", "-Wall", "-Werror", "-o", str(program), str(file))
        return [str(program)]
    if language == "go":
        have("go")
        call("env", f"HOME={directory}", "go", "build", "-o", str(program), str(file))
        return [str(program)]
    return [PYTHON, "-S", "-E", str(file)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_chooses_the_control_itself(
    enabled: Enabled, tmp_path: Path, language: str
) -> None:
    link = enabled("--allow-all", DEFAULT.removeprefix("nn_"))
    link.receiver.listen(RECEIVER, PORT)
    words = command(language, "TCP_CONGESTION", tmp_path)
    program = link.sender.start("setpriv", "--bounding-set=-all", *words, RECEIVER, str(PORT))
    assert program.line() == "connected"
    assert [c.control for c in link.sender.connections()] == [DEFAULT]
    program.succeed()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_marks_a_socket_that_a_run_shall_have(
    link: Link, tmp_path: Path, language: str
) -> None:
    link.receiver.listen(RECEIVER, PORT)
    words = command(language, "SO_MARK", tmp_path)
    under = ["netnice", "run", "--no-hold", "--mark", "7", "--"]
    program = link.sender.start(*under, *words, RECEIVER, str(PORT))
    assert program.line() == "connected"
    assert [(c.control, c.tos) for c in link.sender.connections()] == [(DEFAULT, LE)]
    program.succeed()
