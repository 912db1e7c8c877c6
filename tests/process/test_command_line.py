"""Commands as Windows starts them; the lines follow the documentation of `cmd.exe`, and are not run."""

import pytest

from mcpspy.process.command_line import command_line, words_of

NPX = r"C:\Program Files\nodejs\npx.CMD"
HEAD = r'cmd.exe /d /s /c "C:\Program^ Files\nodejs\npx.CMD'


@pytest.mark.parametrize(
    ("text", "posix", "windows"),
    [
        ("code -w", ["code", "-w"], ["code", "-w"]),
        ("", [], []),
        (r'"C:\Program Files\a.exe" -w', [r"C:\Program Files\a.exe", "-w"], [r"C:\Program Files\a.exe", "-w"]),
        (r"C:\bin\vi.exe", ["C:binvi.exe"], [r"C:\bin\vi.exe"]),
        ("it's", None, ["it's"]),
        ('a "b', None, None),
        ("a # b", ["a", "#", "b"], ["a", "#", "b"]),
    ],
)
def test_the_words_of_a_command_are_those_of_the_platform(text, posix, windows):
    for platform, words in (("linux", posix), ("darwin", posix), ("win32", windows)):
        if words is None:
            with pytest.raises(ValueError, match="No closing quotation"):
                words_of(text, platform)
        else:
            assert words_of(text, platform) == words


def test_a_program_is_started_with_its_words():
    argv = ["python", "-c", 'print("a b")']
    assert command_line(argv, {}, r"C:\python.exe") == [r"C:\python.exe", "-c", 'print("a b")']


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("-y", '^"-y^"'),
        ("", '^"^"'),
        ("a b", '^"a^ b^"'),
        ("a&calc", '^"a^&calc^"'),
        ("%PATH%", '^"^%PATH^%^"'),
        ('{"a":1}', '^"{^"^"a^"^":1}^"'),
        ("x\\", '^"x\\\\^"'),
        ('\\"', '^"\\\\^"^"^"'),
        ("C:\\a", '^"C:\\a^"'),
    ],
)
def test_a_script_is_run_by_cmd_and_every_character_that_it_reads_is_escaped(word, line):
    assert command_line(["npx", word], {}, NPX) == f'{HEAD} {line}"'


def test_the_environment_names_the_shell():
    line = command_line(["a"], {"COMSPEC": r"C:\Windows\system32\cmd.exe"}, "a.bat")
    assert line == r'C:\Windows\system32\cmd.exe /d /s /c "a.bat"'


@pytest.mark.parametrize("word", ["a\nb", "a\r"])
def test_a_line_break_cannot_be_passed_to_a_script(word):
    with pytest.raises(ValueError, match="line break"):
        command_line(["npx", word], {}, NPX)
    assert command_line(["x", word], {}, "x.exe") == ["x.exe", word]
