"""What the paper has, and what was published for it."""

from halfseen.reports.data import Results
from halfseen.reports.look import in_paper, label_of
from halfseen.simulation.methods import MEASURE
from halfseen.studies.builtin import ORDER, builtin_study
from halfseen.studies.published import Figure, Key, published
from halfseen.studies.published_summary import (
    SummaryComparison,
    compare_summary,
    published_summary,
)
from halfseen.studies.spec import Study


def reproduces_paper(study: Study) -> bool:
    """Tell whether a study is one of the package's, at any scale and perhaps narrowed.

    Another study may have the same name; then its title, figures or claims differ.
    """
    if study.name not in ORDER:
        return False
    ours = builtin_study(study.name)
    return (study.title, study.figures, study.claims) == (ours.title, ours.figures, ours.claims)


def not_from_paper(study: Study) -> list[str]:
    """Return the labels of the policies that are not from the paper, for a study of the package.

    The list is empty for a user's own study: its report does not speak of the paper.
    """
    if not reproduces_paper(study):
        return []
    policies = {
        key: None
        for setting in study.settings.values()
        for key, method in setting.methods.items()
        if method.policy != MEASURE
    }
    return [label_of(key) for key in policies if not in_paper(key)]


def repeats(study: Study, setting: str, method: str) -> bool:
    """Tell whether a study has a method unchanged in a setting of the package's study."""
    if study.name not in ORDER:
        return False
    ours = study.settings.get(setting)
    theirs = builtin_study(study.name).settings.get(setting)
    return (
        ours is not None
        and theirs is not None
        and ours.world == theirs.world
        and ours.methods.get(method) == theirs.methods.get(method)
    )


def published_for(study: Study) -> dict[Key, Figure]:
    """Return what was published for the parts of a study that are unchanged.

    A study at another size, or with other methods under the same names, has nothing to compare.
    """
    figures = published(study.name)
    return {
        key: figure for key, figure in figures.items() if repeats(study, key.setting, key.method)
    }


def compare_means(study: Study, results: Results) -> SummaryComparison | None:
    """Return published means over seeds with ours, None where there is nothing to compare.

    Methods of which a published seed was not run are left out.
    """
    means = [m for m in published_summary(study.name) if repeats(study, "default", m.method)]
    if not means:
        return None
    per_seed = results.per_seed.to_dict("records")
    found = compare_summary(per_seed, results.diagnostics.to_dict("records"), means)
    return found if found.excesses else None
