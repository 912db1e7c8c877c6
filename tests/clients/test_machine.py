import os

import pytest

from mcpspy.clients.places import Machine, repository
from tests import limits
from tests.each import each


def test_in_a_directory_that_is_gone_the_home_stands_in(monkeypatch):
    def gone():
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    here = Machine.here()
    assert here.cwd == here.home


def git(*words):
    """Run git without anybody's settings, and outside of a repository that the tests may be called from."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    environ |= dict.fromkeys(("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"), os.devnull)
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *words]
    limits.run(command, check=True, capture_output=True, env=environ)


@pytest.mark.needs("git")
def test_the_git_working_tree_around_a_directory_is_found(tmp_path):
    """CF-10: also a second working tree, which has another main working tree."""
    assert repository(str(tmp_path)) == ("", "")
    (tmp_path / "main" / "deep").mkdir(parents=True)
    git("init", str(tmp_path / "main"))
    main = str(tmp_path / "main")
    assert repository(main) == repository(os.path.join(main, "deep")) == (main, main)
    git("-C", main, "commit", "--allow-empty", "-m", "x")
    git("-C", main, "worktree", "add", str(tmp_path / "second"))
    assert repository(str(tmp_path / "second")) == (str(tmp_path / "second"), main)


@each("text", ["gitdir: ../modules/x\n", "", "gitdir: \0\n"])
def test_a_git_file_that_names_no_main_working_tree_stands_for_itself(tmp_path, text):
    (tmp_path / ".git").write_text(text)
    assert repository(str(tmp_path)) in ((str(tmp_path), str(tmp_path)), ("", ""))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_working_tree_of_another_user_is_not_looked_at(tmp_path):
    (tmp_path / ".git").mkdir()
    os.chown(tmp_path / ".git", 1234, 1234)
    assert repository(str(tmp_path)) == ("", "")
