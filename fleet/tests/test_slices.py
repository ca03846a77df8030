"""slices: finds the slice that was made slow, and nothing where there is nothing."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from slowpath_fleet import cli
from slowpath_fleet.histogram import Floats
from slowpath_fleet.recipe import CONDITIONS, recipe
from slowpath_fleet.slices.cube import Counts, Cube, Where, totals
from slowpath_fleet.slices.decomposition import adjusted, design_effect, likelihood_ratio, parts, tested
from slowpath_fleet.slices.listing import reversals
from slowpath_fleet.slices.search import DISCOVERY, HELD_OUT, Picked, confirmed, description_lengths, search, supported
from slowpath_fleet.store import Store

ROOT = Path(__file__).parents[2]


def run(store: Store, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert cli.main(["slices", str(store.directory), "--json", *words]) == 0
    printed: dict[str, object] = json.loads(capsys.readouterr().out)
    return printed


def test_the_slow_slice_of_the_story_comes_first_with_nearly_all_of_the_gap(
    story: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(story, capsys, "--baseline", "rival", "--max-depth", "3")
    top = found["slices"][0]  # type: ignore[index]
    assert top["where"] == {"device": "M2", "os": "9", "start": "isolated"}
    assert top["confirmed"] and top["contribution"]["value"] > 0.75 and not top["reversal"]
    assert abs(top["mix"] + top["within"] - top["contribution"]["value"]) < 1e-9
    assert top["recipe"] == "slowpath diagnose --warm --user nobody -- PROGRAM"


def test_a_version_that_is_faster_on_every_network_and_slower_as_a_whole_is_flagged(
    story: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(story, capsys, "--by", "version", "--baseline", "1", "--quantile", "75", "--max-depth", "1")
    assert [one["column"] for one in found["reversals"]] == ["network"]  # type: ignore[attr-defined]


def random_cube(random: np.random.Generator, users: int) -> Cube:
    """Launches of clustered users in three columns; the sides are alike."""
    launches = 1 + random.poisson(random.gamma(0.8, 8, users))
    owner = np.repeat(np.arange(users), launches)
    n = len(owner)
    own = random.random((2, users))
    codes = np.stack(
        [(own[0] * 5).astype(int)[owner], (own[1] * 3).astype(int)[owner], random.integers(0, 3, n)], axis=1
    )
    slow = random.normal(0, 0.7, users)[owner] + random.normal(0, 0.7, n) > 1.3
    side, group = random.integers(0, 2, users)[owner], random.integers(0, 64, users)[owner]
    names = [[str(value) for value in range(size)] for size in (5, 3, 3)]
    return Cube(["a", "b", "c"], names, codes, side, group, np.ones(n), slow.astype(np.float64))


def test_without_any_difference_slices_are_found_no_more_often_than_the_rate_allows() -> None:
    random = np.random.default_rng(11)
    tries = 60
    false = 0
    for _ in range(tries):
        cube = random_cube(random, 1500)
        found = supported(cube, 2)
        p = tested(found.counts.of_groups(DISCOVERY), totals(cube).of_groups(DISCOVERY)).p
        false += bool((adjusted(p) <= 0.05).any())
    # All are false here, so the rate is that of any discovery: 5 %, and two standard errors of 60 tries.
    assert false / tries <= 0.05 + 2 * 0.028


def planted(random: np.random.Generator, where: Where, usual: float, slow: float) -> Cube:
    """Launches of users who launch once, in three columns of 5, 2 and 2 values; the first value of the others is that
    of nearly all. Slow ones have a rate of their own in a slice of the other side."""
    n = 40_000
    shares = ([0.2] * 5, [0.8, 0.2], [0.96, 0.04])
    codes = np.stack([random.choice(len(one), n, p=one) for one in shares], axis=1)
    side, group = random.integers(0, 2, n), random.integers(0, 64, n)
    hit = (side == 1) & np.all([codes[:, column] == value for column, value in where], axis=0)
    above = (random.random(n) < np.where(hit, slow, usual)).astype(np.float64)
    names = [[str(value) for value in range(len(one))] for one in shares]
    return Cube(["a", "b", "c"], names, codes, side, group, np.ones(n), above)


@pytest.mark.parametrize(
    ("where", "usual", "slow"),
    [
        (((0, 1), (1, 0)), 0.002, 0.3),
        (((0, 1), (1, 1)), 0.05, 0.4),
        (((0, 1), (1, 0), (2, 0)), 0.002, 0.8),
        (((0, 1),), 0.002, 0.3),
        (((0, 1),), 0.05, 0.2),
        (((1, 1),), 0.01, 0.03),
    ],
)
def test_a_slice_has_the_conditions_that_it_was_made_with_and_no_others(
    where: Where, usual: float, slow: float
) -> None:
    random = np.random.default_rng(16)
    found = [search(planted(random, where, usual, slow), 3, 0.05).picked[0].where for _ in range(10)]
    # One of ten may have a condition too many or too few by chance.
    assert sum(one == where for one in found) >= 9, found


def test_the_likelihood_ratio_of_two_shares_is_that_of_their_counts() -> None:
    k, n = np.array([[10.0, 0.0], [3.0, 30.0], [0.0, 0.0]]), np.array([[10.0, 10.0], [10.0, 100.0], [5.0, 0.0]])
    assert likelihood_ratio(k, n) == pytest.approx([20 * np.log(2), 0, 0])


@pytest.mark.parametrize("repeats", [1, 6])
def test_users_who_repeat_themselves_count_once_in_the_design_effect(repeats: int) -> None:
    random = np.random.default_rng(17)
    users = random.poisson(200, (40, 2, 64)).astype(float)
    slices = Counts(repeats * users, repeats * random.binomial(users.astype(int), 0.1).astype(float))
    total = Counts(slices.launches.sum(0, keepdims=True), slices.above.sum(0, keepdims=True))
    assert design_effect(slices, tested(slices, total).gap_error) == pytest.approx(repeats, rel=0.25)


def test_a_description_with_more_conditions_takes_more_to_say() -> None:
    assert description_lengths([1] * 8 + [2] * 3).tolist() == pytest.approx([np.log(8)] * 8 + [np.log(11)] * 3)


def trap(random: np.random.Generator, others: tuple[float, float]) -> Cube:
    """Every value is a little faster on the other side, whose launches by value these are; the baseline's: 400, 100."""
    group, code, side = np.tile(np.arange(64), 4), np.repeat([0, 1, 0, 1], 64), np.repeat([0, 0, 1, 1], 64)
    launches = np.repeat([400.0, 100.0, *others], 64)
    rate = np.where(code == 0, 0.1, 0.5) - np.where(side == 1, 0.05, 0.0)
    above = random.binomial(launches.astype(int), rate).astype(float)
    return Cube(["a"], [["x", "y"]], code[:, None], side, group, launches, above)


def test_a_reversal_needs_both_signs_beyond_chance() -> None:
    random = np.random.default_rng(13)
    # The whole is slower, as proven as the values are faster.
    slower = trap(random, (100, 400))
    assert [one.column for one in reversals(slower, totals(slower))] == ["a"]
    # The whole is 0 but for chance, which makes it slower in about half of these: 2.5 % of them may pass for proven.
    zero = [trap(random, (337, 163)) for _ in range(60)]
    assert sum(bool(reversals(cube, totals(cube))) for cube in zero) <= 4


def test_without_any_difference_no_slice_is_confirmed(null: Store, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(null, capsys, "--baseline", "rival", "--max-depth", "2")
    assert found["tested"] > 50  # type: ignore[operator]
    assert not [one for one in found["slices"] if one["confirmed"]]  # type: ignore[attr-defined]


def small(folder: Path, per_user: int) -> Path:
    """Two populations that are alike, 100 users each, with so many launches."""
    random = np.random.default_rng(4)
    lines = [
        f"2026-03-01,{side}{user},{side},M{(user + launch) % 2},m,{random.lognormal(6, 0.5):.3f}"
        for side in ("ours", "rival")
        for user in range(100)
        for launch in range(per_user)
    ]
    (folder / "a.csv").write_text("\n".join(["time,user,population,device,metric,value", *lines]))
    assert cli.main(["ingest", str(folder / "a.csv"), "-o", str(folder / "s")]) == 0
    return folder / "s"


@pytest.mark.parametrize(("per_user", "said"), [(1, "Nothing tested: no combination has"), (9, "No slice found: no")])
def test_an_empty_list_says_whether_anything_was_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], per_user: int, said: str
) -> None:
    store, page = small(tmp_path, per_user), tmp_path / "a.html"
    assert cli.main(["slices", str(store), "--html", str(page)]) == 0
    assert said in capsys.readouterr().out and said in page.read_text()


def test_contributions_of_the_values_of_a_column_add_up_to_the_excess() -> None:
    random = np.random.default_rng(12)
    launches = random.integers(50, 500, (7, 2)).astype(float)
    above: Floats = np.floor(launches * random.random((7, 2)))
    total = launches.sum(0, keepdims=True), above.sum(0, keepdims=True)
    found = parts(launches, above, *total)
    rates = (total[1] / total[0])[0]
    assert abs(found.contribution.sum() - (rates[1] - rates[0])) < 1e-12


def test_a_slice_that_grew_and_is_no_slower_contributes_nothing() -> None:
    launches, above = np.array([[100.0, 300.0], [900.0, 700.0]]), np.array([[10.0, 30.0], [90.0, 70.0]])
    found = parts(launches, above, launches.sum(0, keepdims=True), above.sum(0, keepdims=True))
    assert np.allclose(found.contribution, 0)


def test_the_users_that_confirm_are_not_those_that_discover() -> None:
    counts = Counts(np.arange(64.0).reshape(1, 1, 64), np.zeros((1, 1, 64)))
    seen, held = (counts.of_groups(one).launches.ravel().tolist() for one in (DISCOVERY, HELD_OUT))
    assert sorted(seen + held) == list(range(64))


@pytest.mark.parametrize(("groups", "expected"), [(DISCOVERY, False), (np.arange(64), True)])
def test_a_slice_is_confirmed_by_the_users_who_were_held_out_alone(groups: np.ndarray, expected: bool) -> None:
    random = np.random.default_rng(15)
    launches = np.full((1, 2, 64), 100.0)
    rate = np.full((1, 2, 64), 0.1)
    # The slice is slow on the other side, for these groups of users.
    rate[0, 1, groups] = 0.3
    above = random.binomial(100, rate).astype(float)
    total = Counts(3 * launches, above + random.binomial(200, 0.1, (1, 2, 64)))
    assert confirmed([Picked((), Counts(launches, above), 0.0)], total, 0.05) == [expected]


def test_recipes_use_options_that_slowpath_has() -> None:
    source = ROOT / "crates/cli/src"
    text = "".join(path.read_text() for path in (source / "arguments.rs", *sorted((source / "arguments").glob("*.rs"))))
    declared = set(re.findall(r"pub (\w+):", text))
    used = {word[2:] for one in CONDITIONS for word in one.options if word.startswith("--")}
    used |= {"cold", "state"}
    assert used and used <= declared and "Diagnose(" in text


def test_a_condition_that_cannot_be_made_is_said() -> None:
    command, notes = recipe({"device": "M2", "start": "warm", "isolated": "1", "storage": "hdd"}, "app --x")
    assert command == "slowpath diagnose --warm --user nobody -- app --x"
    assert "device = M2" in notes[0]


def test_a_state_of_the_field_is_put_around_the_recipe_and_asked_for_where_it_matters() -> None:
    command, _ = recipe({"start": "isolated"}, "app", "my state.json")
    assert command == (
        "slowpath artifacts age --state 'my state.json' --user root -- slowpath diagnose --warm --user nobody -- app"
    )
    command, notes = recipe({"outcome": "unreadable"}, "app")
    assert command == "slowpath diagnose --warm --user nobody -- app" and "artifacts audit --json" in notes[0]


def test_memory_and_cpus_of_a_slice_are_said_as_commands() -> None:
    _, notes = recipe({"ram": "2 GiB", "cpus": "4", "start": "cold"}, "app")
    assert "-p MemoryMax=2048M" in notes[0] and "taskset -c 0-3" in notes[1]
    assert "MemoryMax=NM" in recipe({"ram": "low"}, "app")[1][0]
