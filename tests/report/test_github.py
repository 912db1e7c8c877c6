from mcpspy.report.github import command


def test_without_a_line_it_belongs_to_the_file():
    assert command("notice", "a.jsonl", None, "odd", "x") == "::notice file=a.jsonl,title=odd::x\n"


def test_nothing_in_a_text_ends_the_command_or_begins_a_member():
    told = command("warning", "a,b:c", 1, "x:y,z%", "100%\n::error::no")
    assert told == "::warning file=a%2Cb%3Ac,line=1,title=x%3Ay%2Cz%25::100%25%0A::error::no\n"
