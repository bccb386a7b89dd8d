"""The command line of the demonstration."""

import pytest

from extender.cli import main


@pytest.mark.parametrize(
    "flag", ["--nodes=0", "--nodes=x", "--pods=-1", f"--pods={2**63}", "--pause=-1", "--pause=nan", "--pause=x"]
)
def test_a_story_that_cannot_be_told_is_wrong_usage(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["demo", flag])
    assert ended.value.code == 2
    assert f"argument {flag.partition('=')[0]}: must be a number" in capsys.readouterr().err
