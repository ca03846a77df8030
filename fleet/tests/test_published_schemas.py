"""The published schemas are what the types say, and what is printed follows them."""

from pathlib import Path

from slowpath_fleet.published_schemas import schemas

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


def test_published_schemas_are_what_the_types_say() -> None:
    wrong = [
        name for name, text in schemas().items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    assert not wrong, "python -m slowpath_fleet.published_schemas docs/schemas"


def test_no_schema_is_published_that_no_command_prints() -> None:
    assert {path.name for path in FOLDER.glob("fleet-*.json")} == set(schemas())
