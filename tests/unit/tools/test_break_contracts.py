"""Every contract has an import that breaks it."""

from pathlib import Path

from tools.break_contracts import CONFIG, FORBIDDEN, contracts, problems


def test_every_contract_is_tried() -> None:
    assert set(contracts(Path(__file__).parents[3] / CONFIG)) == set(FORBIDDEN)


def test_an_untried_contract_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text("[importlinter:contract:new]\nname = New\n")
    assert "new: is not both" in "\n".join(problems(tmp_path))
