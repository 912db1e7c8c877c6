"""What counts as a secret: the one table of token kinds, and the rules for names of secrets.

It is used by the redactor (heads, command lines, logins: `mcpspy.secrets.redactor`) and by the rule
`security/secret-in-frame` with its quick test (`mcpspy.secrets.tokens`). A test compares `docs/secrets.md` with it. A
new kind of secret is one row of `KINDS`; a new name of a secret is one word below.

In a frame, only the exact form of a token counts, because a false alarm there is worse than a miss. In heads and
command lines a shorter form is enough, because a miss there is worse. Tokens without a form of their own (for example
32 hex digits) are recognised only by the name of what contains them.

Imported on the `wrap` path: no `re` here.
"""


class Kind:
    """One kind of token: the literals with which it begins, and regexes of linear time for the rest.

    To stay linear, a repetition that is followed by something has an upper bound.
    """

    __slots__ = ("after", "kept", "literals", "name", "not_after", "rest", "short", "text", "whole")

    def __init__(
        self,
        name: str,
        literals: str,
        rest: str,
        short: "int | str" = "",
        *,
        not_after: str = "A-Za-z0-9",
        after: str = "",
        kept: bool = False,
        text: str = "",
        whole: str = "",
    ) -> None:
        self.name = name
        """The name for people."""
        self.literals = tuple(literals.split(" "))
        """Every token of this kind begins with one of them."""
        self.rest = rest
        """The regex after the literal, in a frame."""
        self.short = short and (short if isinstance(short, str) else _solid(short))
        """The regex after the literal in heads and command lines, beside `rest`. A number stands for `_solid`."""
        self.not_after = not_after
        """The character before the token is not one of these."""
        self.after = after
        """Used in place of `not_after`: the token follows this regex of fixed width, which is not secret."""
        self.kept = kept
        """Whether the literal is not part of the secret: the host of a URL."""
        self.text = text
        """The regex in heads and command lines, if not built from the others. Its groups: `kept` and `token`."""
        self.whole = whole or rest
        """The regex after the literal in a message that is scrubbed, if `rest` ends before the token does."""


def _solid(least: int) -> str:
    """Return a regex for at least `least` letters and digits with a digit among them, or at least 16 of any kind."""
    return rf"(?:(?=[A-Za-z]{{0,40}}[0-9])[A-Za-z0-9]{{{least},}}|[A-Za-z0-9]{{16,}})[\w-]*"


_DASHED = r"(?:(?=[\w-]{0,40}[0-9])[\w-]{6,}|[A-Za-z0-9]{16,}[\w-]*)"  # 6 characters with a digit among them
_URL = r"(?:[\w.-]{1,30}/){0,4}[\w=%~-]{16,}[\w/=%~.-]*"  # a path with a long segment

KINDS = (
    Kind(
        "OpenAI, Anthropic or similar API key",
        "sk-",
        r"(?:(?:proj|ant|or|svcacct|admin|lf|None)-[\w-]{20,}|(?:[A-Za-z0-9]{2,10}-){0,2}[A-Za-z0-9]{20,}[\w-]*)",
        _DASHED,
    ),
    Kind("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", "[A-Za-z0-9]{16,}", 6),
    Kind("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}", 6),
    Kind("GitHub fine-grained token", "github_pat_", r"\w{22,}", _DASHED),
    Kind(
        "GitLab token", "glpat- gldt- glrt- glcbt- glptt- gloas- glft- glimt- glagent- glsoat-", r"[\w-]{20,}", _DASHED
    ),
    Kind("Slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxc- xoxd- xoxe.", "[A-Za-z0-9.-]{10,}", r"[\w.-]{4,}"),
    Kind("Slack app token", "xapp-", "[0-9]-[A-Za-z0-9-]{16,}", "[0-9]-[A-Za-z0-9-]{4,}"),
    Kind(
        "Slack webhook", "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/",
        r"[A-Z0-9]{6,20}/[A-Z0-9]{6,20}/[A-Za-z0-9/]{16,}", r"[\w/-]{6,}", kept=True,
    ),
    Kind(
        "Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"[0-9]{8,24}/[\w-]{20,}", r"[\w/-]{6,}", kept=True,
    ),
    Kind("Microsoft webhook", "webhook.office.com/", _URL, kept=True),
    Kind("AWS access key", "AKIA ASIA ABIA ACCA", "[A-Z0-9]{16}(?![A-Za-z0-9])", "[A-Z0-9]{12,}"),
    Kind("Google API key", "AIza", r"[\w-]{35}", _DASHED),
    Kind("Google OAuth client secret", "GOCSPX-", r"[\w-]{24,}", _DASHED),
    Kind("Google OAuth token", "ya29.", r"[\w-]{20,}", r"[\w.-]{6,}"),
    Kind(
        "JSON Web Token", "eyJ", r"[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}", not_after=r"\w-",
        # also encrypted, also after `x_`; looking ahead for the dots keeps it linear
        text=r"(?<![\w-])(?=[\w-]+\.[\w-]*\.)(?P<kept>[\w-]*?)(?P<token>eyJ[\w-]+(?:\.[\w-]*){2,4})",
    ),
    Kind("Hugging Face token", "hf_", "[A-Za-z0-9]{30,}", 8),
    Kind("npm token", "npm_", "[A-Za-z0-9]{36,}", 10),
    Kind("PyPI token", "pypi-", r"AgE[\w-]{20,}", 10),
    Kind("RubyGems token", "rubygems_", "[0-9a-f]{48}", 8),
    Kind("SendGrid key", "SG.", r"[\w-]{16,64}\.[\w-]{16,}", r"[\w-]{6,64}\.?[\w-]{6,}"),
    Kind("Shopify token", "shpat_ shpca_ shppa_ shpss_", "[0-9a-fA-F]{32}", 8),
    Kind("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", "[0-9a-f]{64}", 8),
    Kind("Notion token", "ntn_", "[A-Za-z0-9]{40,}", 8),
    Kind("Notion integration token", "secret_", "[A-Za-z0-9]{43}(?![A-Za-z0-9])", 24),
    Kind("Linear key", "lin_api_ lin_oauth_", "[A-Za-z0-9]{32,}", 8),
    Kind("Figma token", "figd_ figo_", r"[\w-]{40,}", 8),
    Kind("Groq key", "gsk_", "[A-Za-z0-9]{40,}", 8),
    Kind("xAI key", "xai-", "[A-Za-z0-9]{60,}", 10),
    Kind("Perplexity key", "pplx-", "[A-Za-z0-9]{40,}", 10),
    Kind("Tavily key", "tvly-dev- tvly-prod- tvly-", "[A-Za-z0-9]{20,}", 8),
    Kind("Firecrawl key", "fc-", "[0-9a-f]{32}(?![A-Za-z0-9])", 16),
    Kind("Replicate token", "r8_", "[A-Za-z0-9]{37,}", 10),
    Kind("Pinecone key", "pcsk_", r"\w{40,}", 8),
    Kind("NVIDIA key", "nvapi-", r"[\w-]{40,}", 8),
    Kind("Cerebras key", "csk-", "[A-Za-z0-9]{40,}", 10),
    Kind("Jina key", "jina_", r"\w{40,}", 10),
    Kind("ElevenLabs key", "sk_", "[0-9a-f]{48}", 16),
    Kind("LangSmith key", "lsv2_pt_ lsv2_sk_", "[0-9a-f]{32}_[0-9a-f]{10}", 8),
    Kind("E2B key", "e2b_", "[0-9a-f]{40}", 8),
    Kind("Browserbase key", "bb_live_", r"[\w-]{20,}", 8),
    Kind("Apify token", "apify_api_", "[A-Za-z0-9]{30,}", 8),
    Kind("Resend key", "re_", "[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    Kind("PostHog personal key", "phx_", "[A-Za-z0-9]{32,}", 8),
    Kind("Atlassian token", "ATATT ATCTT", r"[\w=-]{20,}", r"[\w=-]{8,}"),
    Kind("Databricks token", "dapi", "[0-9a-f]{32}(?![A-Za-z0-9])", "[0-9a-f]{16,}"),
    Kind("HashiCorp Vault token", "hvs. hvb. hvr.", r"[\w-]{24,}", r"[\w-]{8,}"),
    Kind("Terraform Cloud token", ".atlasv1.", r"[\w-]{40,}", r"[\w-]{8,}", after="[A-Za-z0-9]{6}"),
    Kind("Sentry token", "sntrys_ sntryu_", r"[\w+/=-]{20,}", r"[\w+/=-]{8,}"),
    Kind("Docker token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}", r"[\w-]{8,}"),
    Kind("Postman key", "PMAK-", "[0-9a-f]{24}-[0-9a-f]{34}", r"[\w-]{8,}"),
    Kind("Webhook signing secret", "whsec_", "[A-Za-z0-9+/]{24,}={0,2}", "[A-Za-z0-9+/]{8,}={0,2}"),
    Kind("Telegram bot token", ":AA", r"[\w-]{33}", r"[\w-]{24,}", after="[0-9]{8}"),
    Kind("Twilio key", "SK", "[0-9a-f]{32}(?![A-Za-z0-9])"),
    Kind("Mailgun key", "key-", "[0-9a-f]{32}(?![A-Za-z0-9])", not_after=r"\w-"),
    Kind("age key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}", "[A-Z0-9]{8,}"),
    Kind(
        "private key (PEM)", "-----BEGIN",
        r" [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\s){0,8}[A-Za-z0-9+/:,. -]{16,}",
        r" [A-Z0-9 ]{0,30}KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*+(?:-----END[A-Z0-9 ]{0,40}-----)?",
        not_after="-",
        whole=r" [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\{1,8}[nr]|\s){0,8}[A-Za-z0-9+/:,. -]{16,}"
        r"(?:[^-]|-(?!----))*+(?:-----END[A-Z0-9 ]{0,40}-----)?",
    ),
    Kind("Azure connection string", "AccountKey= SharedAccessKey=", "[A-Za-z0-9+/]{40,}={0,2}", "[A-Za-z0-9+/=]{8,}"),
    Kind("Zapier MCP URL", "mcp.zapier.com/ actions.zapier.com/", _URL, kept=True),
    Kind("Composio MCP URL", "mcp.composio.dev/ backend.composio.dev/ apollo.composio.dev/", _URL, kept=True),
    Kind("Grafana token", "glsa_ glc_", r"\w{32,}", 8),
    Kind("New Relic key", "NRAK-", "[A-Z0-9]{27}", 8),
    Kind("PlanetScale token", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w.-]{32,}", 8),
    Kind("Supabase key", "sbp_ sb_secret_", r"[\w-]{30,}", 8),
    Kind("Doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim.", "[A-Za-z0-9.]{40,}", 8),
    Kind("Square token", "sq0atp- sq0csp-", r"[\w-]{22,}", 8),
    Kind("Fly.io token", "fm2_ fo1_", r"[\w+/=-]{40,}", r"[\w+/=-]{16,}"),
    Kind("Contentful token", "CFPAT-", r"[\w-]{40,}", 8),
    Kind("HubSpot token", "pat-na1- pat-eu1- pat-na2-", "[0-9a-f-]{36}", "[0-9a-f-]{16,}"),
    Kind("Netlify token", "nfp_", "[A-Za-z0-9]{36,}", 10),
    Kind("Tailscale key", "tskey-api- tskey-auth- tskey-client-", "[A-Za-z0-9-]{16,}", 8),
    Kind("1Password service account", "ops_eyJ", r"[\w+/=-]{40,}", r"[\w+/=-]{8,}"),
    Kind("Sourcegraph token", "sgp_", r"\w{40,}", 8),
    Kind("Pulumi token", "pul-", "[0-9a-f]{40}", 16),
    Kind("Buildkite token", "bkua_", "[0-9a-f]{40}", 8),
)  # fmt: skip

SCHEMES = ("bearer", "basic")
"""The authentication schemes (RFC 9110, section 11.1) before secret credentials, in lower case."""

# The value of a name with such an ending is a secret: `GITHUB_TOKEN`, `githubToken`, `githubtoken`.
_ENDINGS = tuple(
    "token secret secrets password passwords passwd pwd passphrase passcode apikey apikeys apitokens accesstokens"
    " authtokens refreshtokens auth credential credentials signature accesskey privatekey authorization authentication"
    " cookie cookies authkey secretkey subscriptionkey masterkey accountkey signingkey encryptionkey sharedkey"
    " functionskey servicekey licensekey clientkeydata privatekeydata secretstring securestring secretbinary jwt"
    " mnemonic seedphrase seedwords recoveryphrase secretphrase".split()
)
FOREIGN_NAMES = tuple(
    "passwort kennwort contraseña contrasena motdepasse wachtwoord lösenord losenord passord adgangskode salasana"
    " jelszó jelszo şifre пароль 密码 密碼 パスワード 비밀번호".split()
)
"""The same: passwords in other languages."""
FOREIGN_WORDS = tuple("senha hasło haslo heslo sifre".split())
"""The same, as separate words: `resenha` is a review."""
# The same for these if they are separate words: `--key`, `DB_PASS`, `githubPat`, but not `monkey`, `compass`.
_WORDS = frozenset((*"key pass pat bearer creds tokens otp".split(), *FOREIGN_WORDS))
_WORD_ENDINGS = tuple(_WORDS)
# Not secret: by the last word, the word before it.
_NO_SECRET = {
    "key": frozenset(
        "public primary foreign sort partition row cache idempotency socket websocket surrogate hot shortcut group"
        " routing object arrow map dict no".split()
    ),
    "tokens": frozenset(
        "max min num n no input output total prompt completion reasoning thinking cached new used context budget"
        " generated special stop".split()
    ),
    "token": frozenset(("progress",)),  # a member of MCP that authenticates nobody
    "credentials": frozenset(("allow",)),  # Access-Control-Allow-Credentials
    "pass": frozenset("multi single two by no first second".split()),
}

# Secret only in OAuth: in queries, forms and OAuth bodies.
_OAUTH = frozenset("code codeverifier assertion clientassertion devicecode samlresponse sig otp pass".split())
# A body with one of these members or fields belongs to OAuth, wherever it was sent.
OAUTH_MEMBERS = frozenset("grant_type code_verifier client_assertion client_secret".split())


PASSWORD_OPTIONS = {
    **dict.fromkeys(
        "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlslap mysqlsh mysqlbinlog mariadb mariadb-dump"
        " mariadb-admin mariadb-import mariadb-show mariadb-check 7z 7za 7zr".split(),
        ("-p", False),
    ),
    **dict.fromkeys("sshpass mongo mongosh mongodump mongorestore mongoexport mongoimport cqlsh".split(), ("-p", True)),
    **dict.fromkeys("sqlcmd bcp isql osql tsql zip unzip mosquitto_pub mosquitto_sub".split(), ("-P", True)),
    **dict.fromkeys("redis-cli valkey-cli keydb-cli".split(), ("-a", True)),
    **dict.fromkeys("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd".split(), ("-w", True)),
}
"""By program: the short option for a password, and whether the password may also be the next word.

In other programs, these options mean something else: `-p8080`.
"""
OTHER_OPTIONS = ("-password", "-path", "-port", "-prompt")
"""Options that only begin as one for a password does."""
_LAUNCHERS = frozenset("sudo doas env exec nohup nice time timeout xargs".split())
LOGIN_PROGRAMS = tuple("docker podman nerdctl buildah skopeo helm oras crane oc az cf ibmcloud".split())
"""Programs that have `LOGIN_OPTION` after the word `login` only: `docker run -p 80:80`."""
LOGIN_OPTION = ("-p", True)
ORACLE_PROGRAMS = frozenset("sqlplus sqlcl sqlldr expdp impdp".split())
"""Programs with a word `user/password@database`."""
PROGRAM_STEMS = tuple("ql maria 7z mongo bcp zip mosq -cli ldap pdp".split())
"""Each program with an option or a word for a password has one of these in its name, or `pass`."""

# The private members of a JSON Web Key (RFC 7518, 6): secret beside a member `kty`.
JWK_SECRETS = frozenset("d p q dp dq qi k".split())


def is_secret_name(name: str) -> bool:
    """Return whether the value of a header, query key, form key, JSON key, variable or option `name` is a secret."""
    plain = _plain(name).rstrip("0123456789")  # also `API_KEY_2`
    if plain.endswith(_ENDINGS) or plain.endswith(FOREIGN_NAMES):
        return not plain.endswith(("progresstoken", "allowcredentials"))
    if not plain.endswith(_WORD_ENDINGS):
        return False
    before, last = _last_words(name)
    return last in _WORDS and before not in _NO_SECRET.get(last, ())


def is_oauth_secret(name: str) -> bool:
    """Return the same for queries, forms and OAuth bodies, where more is secret: also `code[0]`, `login[code]`."""
    return any(is_secret_name(part) or _plain(part) in _OAUTH for part in name.split("["))


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))  # also `Authorization ` and `token[]`


def _last_words(name: str) -> tuple[str, str]:
    """Return the last two words of a name. Punctuation, trailing digits and capitals separate: `DB_PASS`, `apiKey2`."""
    words = [""]
    previous = ""
    for character in name[-64:]:
        if not character.isalpha():
            words.append("")
        elif character.isupper() and previous.islower():
            words.append(character)
        else:
            words[-1] += character
        previous = character
    found = ["", *(word.lower() for word in words if word)]
    return (found[-2], found[-1]) if len(found) > 1 else ("", "")


def is_run(before: "list[str]", folder: str) -> "bool | None":
    """Return whether a program is run after these words of a command line; None if it may be.

    It is not if it is the value of an option, or part of the name of a package: `--name mongo`, `@scope/mongo`. It may
    be after another word: `docker exec db mysql`, but also `docker run mongo`.
    """
    if folder and folder[0] not in "/.~\\" and folder[1:2] != ":" and not folder.rstrip("/\\").endswith("bin"):
        return False
    last = before[-1] if before else "--"
    if last == "--" or last in _LAUNCHERS:
        return True
    return None if last[:1] != "-" or not _LAUNCHERS.isdisjoint(before) else False


def is_port(value: str) -> bool:
    """Return whether the value of an option may be a port, or a mapping of ports: `8080:80/tcp`."""
    ports = value.partition("/")[0].split(":")
    return all(port.isdecimal() and len(port) <= 5 for port in ports)
