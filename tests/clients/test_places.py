import os

import pytest

from mcpspy.clients.places import Found, Machine, candidates, find, present, sharing
from mcpspy.clients.table import BY_ID
from tests.clients.configurations import machine
from tests.each import each

MAC = Machine("/Users/me", "darwin", {}, "/Users/me/code/app")
LINUX = Machine("/home/me", "linux", {}, "/home/me/code/app")
WINDOWS = Machine("C:\\Users\\me", "win32", {}, "C:\\Users\\me\\app")


def first(name, here, scope="user", number=0):
    places = [one for one in BY_ID[name].places if one.scope == scope]
    return next(iter(candidates(places[number], here)), None)


@each(
    "name, mac, linux, windows",
    [
        ("cursor", "~/.cursor/mcp.json", "~/.cursor/mcp.json", "~\\.cursor\\mcp.json"),
        (
            "claude-desktop",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            "~/.config/Claude/claude_desktop_config.json",
            "~\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
        ),
        ("claude-code", "~/.claude.json", "~/.claude.json", "~\\.claude.json"),
        (
            "vscode",
            "~/Library/Application Support/Code/User/mcp.json",
            "~/.config/Code/User/mcp.json",
            "~\\AppData\\Roaming\\Code\\User\\mcp.json",
        ),
        (
            "windsurf",
            "~/.codeium/windsurf/mcp_config.json",
            "~/.codeium/windsurf/mcp_config.json",
            "~\\.codeium\\windsurf\\mcp_config.json",
        ),
        (
            "zed",
            "~/.config/zed/settings.json",
            "~/.config/zed/settings.json",
            "~\\AppData\\Roaming\\Zed\\settings.json",
        ),
        ("continue", "~/.continue/config.yaml", "~/.continue/config.yaml", "~\\.continue\\config.yaml"),
        ("gemini-cli", "~/.gemini/settings.json", "~/.gemini/settings.json", "~\\.gemini\\settings.json"),
        ("codex", "~/.codex/config.toml", "~/.codex/config.toml", "~\\.codex\\config.toml"),
    ],
)
def test_the_user_s_configuration_lies_where_the_platform_wants_it(name, mac, linux, windows):
    for here, path in ((MAC, mac), (LINUX, linux), (WINDOWS, windows)):
        assert first(name, here) == path.replace("~", here.home)


def test_cline_has_a_file_of_its_own_and_one_in_vs_code():
    tail = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    assert first("cline", LINUX) == "/home/me/.cline/data/settings/cline_mcp_settings.json"
    assert first("cline", LINUX, number=1) == f"/home/me/.config/Code/User/{tail}"
    assert first("cline", MAC, number=1) == f"/Users/me/Library/Application Support/Code/User/{tail}"


def test_claude_desktop_in_a_package_has_another_file_on_windows_only():
    local = "C:\\Users\\me\\AppData\\Local\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json"
    assert first("claude-desktop", WINDOWS, number=1) == local
    assert first("claude-desktop", MAC, number=1) is None


def test_on_windows_the_environment_says_where_settings_lie():
    here = Machine("C:\\Users\\me", "win32", {"APPDATA": "D:\\Data", "LOCALAPPDATA": "D:\\Local"}, "C:\\")
    assert first("vscode", here) == "D:\\Data\\Code\\User\\mcp.json"
    assert first("claude-desktop", here, number=1).startswith("D:\\Local\\Packages\\Claude_*")


def test_a_project_is_looked_for_upwards_as_far_as_the_home():
    paths = candidates(BY_ID["cursor"].places[1], LINUX)
    assert paths == [f"/home/me/{folder}.cursor/mcp.json" for folder in ("code/app/", "code/")]
    elsewhere = candidates(BY_ID["cursor"].places[1], Machine("/home/me", "linux", {}, "/srv/app"))
    assert elsewhere == ["/srv/app/.cursor/mcp.json"], "what is above may be somebody else's"
    near = candidates(BY_ID["cursor"].places[1], Machine("/home/me", "linux", {}, "/home/me2/app"))
    assert near == ["/home/me2/app/.cursor/mcp.json"]
    windows = candidates(BY_ID["cursor"].places[1], WINDOWS)
    assert windows == ["C:\\Users\\me\\app\\.cursor\\mcp.json"]


def test_the_nearest_file_that_exists_is_the_one(tmp_path):
    here = machine(tmp_path, cwd=str(tmp_path / "home" / "a" / "b"))
    for folder in ("home", "home/a"):
        (tmp_path / folder / ".cursor").mkdir(parents=True)
        (tmp_path / folder / ".cursor" / "mcp.json").write_text("{}")
    found = find(BY_ID["cursor"], here)
    assert [(one.place.scope, os.path.relpath(one.path, tmp_path)) for one in found] == [
        ("user", "home/.cursor/mcp.json"),
        ("project", "home/a/.cursor/mcp.json"),
    ]
    assert [one.place.scope for one in find(BY_ID["cursor"], here, "project")] == ["project"]


@pytest.mark.parametrize("link", [False, True])
def test_in_the_home_the_user_s_file_is_no_project_s(tmp_path, monkeypatch, link):
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    (home / ".cursor" / "mcp.json").write_text("{}")
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "link" if link else home))
    monkeypatch.chdir(home)
    here = Machine.here()
    assert [one.place.scope for one in find(BY_ID["cursor"], here)] == ["user"]
    assert find(BY_ID["cursor"], here, "project") == []
    (home / "app").mkdir()
    monkeypatch.chdir(home / "app")
    assert [one.place.scope for one in find(BY_ID["cursor"], Machine.here())] == ["user"]
    (home / ".claude.json").write_text("{}")
    assert [one.place.scope for one in find(BY_ID["claude-code"], here)] == ["user", "local"]


def test_a_star_stands_for_every_name_and_only_where_the_table_has_it(tmp_path):
    work = tmp_path / "home" / "[work] *"
    servers = work / ".continue" / "mcpServers"
    servers.mkdir(parents=True)
    for name in ("b.yaml", "a.yaml", "c.json", "d.txt"):
        (servers / name).write_text("")
    found = find(BY_ID["continue"], machine(tmp_path, cwd=str(work)))
    assert [os.path.basename(one.path) for one in found] == ["a.yaml", "b.yaml", "c.json"]


def test_a_broken_link_is_there(tmp_path):
    (tmp_path / "home" / ".cursor").mkdir(parents=True)
    (tmp_path / "home" / ".cursor" / "mcp.json").symlink_to("nowhere")
    assert len(find(BY_ID["cursor"], machine(tmp_path))) == 1


def test_two_clients_with_one_file_are_seen(tmp_path):
    here = machine(tmp_path)
    cursor, windsurf = (tmp_path / "home" / one for one in (".cursor/mcp.json", ".codeium/windsurf/mcp_config.json"))
    for path in (cursor, windsurf):
        path.parent.mkdir(parents=True)
    cursor.write_text("{}")
    windsurf.symlink_to(cursor)
    [found] = find(BY_ID["windsurf"], here)
    assert sharing(found, here) == ["Cursor"]
    project = tmp_path / "home" / "work" / ".mcp.json"
    project.parent.mkdir()
    project.write_text("{}")
    assert sharing(Found(BY_ID["claude-code"], BY_ID["claude-code"].places[2], str(project)), here) == [
        "VS Code",
        "Copilot CLI",
    ]


def test_in_a_git_working_tree_a_project_is_looked_for_as_far_as_its_root():
    """CF-10: also outside the home."""
    here = Machine("/home/me", "linux", {}, "/srv/repo/a/b", "/srv/repo", "/srv/repo")
    assert candidates(BY_ID["cursor"].places[1], here) == [
        f"/srv/repo/{folder}.cursor/mcp.json" for folder in ("a/b/", "a/", "")
    ]


def test_a_file_that_the_client_reads_in_each_directory_is_found_in_each(tmp_path):
    """CF-10: Claude Code, Copilot CLI and opencode; Cursor reads the nearest one."""
    here = machine(tmp_path, cwd=str(tmp_path / "home" / "a" / "b"))
    for folder in ("home/a/b", "home/a"):
        (tmp_path / folder / ".github").mkdir(parents=True)
        for name in (".mcp.json", ".github/mcp.json", "opencode.jsonc"):
            (tmp_path / folder / name).write_text("{}")
    for client, names in (
        ("claude-code", ["a/b/.mcp.json", "a/.mcp.json"]),
        ("copilot", ["a/b/.mcp.json", "a/.mcp.json", "a/b/.github/mcp.json", "a/.github/mcp.json"]),
        ("opencode", ["a/b/opencode.jsonc", "a/opencode.jsonc"]),
        ("vscode", ["a/b/.mcp.json"]),
    ):
        found = [os.path.relpath(one.path, tmp_path / "home") for one in find(BY_ID[client], here)]
        assert found == names, client


@each(
    "client, environ, path",
    [
        ("codex", {"CODEX_HOME": "/etc/codex"}, "/etc/codex/config.toml"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "alt"}, "/home/me/code/app/alt/.claude.json"),
        ("zed", {"XDG_CONFIG_HOME": "/cfg"}, "/cfg/zed/settings.json"),
        ("vscode", {"XDG_CONFIG_HOME": "/cfg"}, "/cfg/Code/User/mcp.json"),
        ("cline", {"CLINE_DIR": "/c"}, "/c/data/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_DIR": "/c", "CLINE_DATA_DIR": "/d"}, "/d/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_DATA_DIR": "/d", "CLINE_MCP_SETTINGS_PATH": "/f.json"}, "/f.json"),
        ("gemini-cli", {"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"),
        ("qwen", {"QWEN_HOME": "/q"}, "/q/settings.json"),
        ("copilot", {"COPILOT_HOME": "/c"}, "/c/mcp-config.json"),
        ("copilot", {"XDG_CONFIG_HOME": "/x"}, "/home/me/.copilot/mcp-config.json"),
        ("mcporter", {"MCPORTER_CONFIG": "/m.json"}, "/m.json"),
        ("continue", {"CONTINUE_GLOBAL_DIR": "/n"}, "/n/config.yaml"),
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"),
        ("opencode", {"XDG_CONFIG_HOME": " "}, "/home/me/.config/opencode/opencode.json"),
    ],
)
def test_each_client_has_variables_that_move_its_file(client, environ, path):
    """CF-10: each was observed with the client itself."""
    assert first(client, Machine("/home/me", "linux", environ, "/home/me/code/app")) == path


def test_opencode_keeps_its_files_in_the_same_place_on_every_platform():
    assert first("opencode", MAC, number=1) == "/Users/me/.config/opencode/opencode.jsonc"
    assert first("opencode", WINDOWS) == "C:\\Users\\me\\.config\\opencode\\opencode.json"
    assert first("opencode", LINUX, number=3) is None
    named = Machine("/home/me", "linux", {"OPENCODE_CONFIG": "o.json"}, "/home/me/code/app")
    assert first("opencode", named, number=3) == "/home/me/code/app/o.json"


def test_a_client_is_here_if_a_file_of_its_own_is(tmp_path):
    """VS Code and Copilot CLI also read Claude Code's file, which does not make them present."""
    here = machine(tmp_path)
    (tmp_path / "home" / "work").mkdir(parents=True)
    (tmp_path / "home" / "work" / ".mcp.json").write_text("{}")
    assert [one.client.id for one in present(here)] == ["claude-code"]
    (tmp_path / "home" / ".copilot").mkdir()
    (tmp_path / "home" / ".copilot" / "mcp-config.json").write_text("{}")
    assert [one.client.id for one in present(here)] == ["claude-code", "copilot", "copilot"]


@each(
    "name, mac, linux, windows",
    [
        ("Code - Insiders/User/mcp.json", "CONFIG", "CONFIG", "CONFIG"),
        ("VSCodium/User/mcp.json", "CONFIG", "CONFIG", "CONFIG"),
        ("Code/User/profiles/*/mcp.json", "CONFIG", "CONFIG", "CONFIG"),
        (".vscode-server/data/User/mcp.json", "HOME", "HOME", "HOME"),
        (".vscodium-server/data/User/mcp.json", "HOME", "HOME", "HOME"),
        ("code-server/User/mcp.json", "DATA", "DATA", ""),
        ("code-server/User/profiles/*/mcp.json", "DATA", "DATA", ""),
    ],
)
def test_vs_code_has_products_profiles_and_servers_with_files_of_their_own(name, mac, linux, windows):
    """V-03."""
    config = {"darwin": "Library/Application Support", "linux": ".config", "win32": "AppData\\Roaming"}
    for here, folder in ((MAC, mac), (LINUX, linux), (WINDOWS, windows)):
        below = {"CONFIG": config[here.platform], "HOME": "", "DATA": ".local/share"}.get(folder)
        path = here.paths.normpath(here.paths.join(here.home, below, name)) if below is not None else None
        found = [path for place in BY_ID["vscode"].places for path in candidates(place, here)]
        assert any(one.endswith(here.paths.normpath(name)) for one in found) == (path is not None)
        assert path is None or path in found


def test_each_profile_of_vs_code_is_found(tmp_path):
    """V-03."""
    here = machine(tmp_path)
    for folder in ("Code/User", "Code/User/profiles/-6f2a", "Code/User/profiles/a"):
        path = tmp_path / "home" / ".config" / folder / "mcp.json"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    found = find(BY_ID["vscode"], here)
    assert [os.path.relpath(one.path, tmp_path / "home/.config/Code/User") for one in found] == [
        "mcp.json", "profiles/-6f2a/mcp.json", "profiles/a/mcp.json",
    ]  # fmt: skip
    assert next(one.place.note for one in found) == ""
