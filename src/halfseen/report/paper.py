"""Which reports speak of the paper, and which methods in them are not from it."""

from halfseen.report.look import in_paper, label_of
from halfseen.simulation.measures import MEASURE
from halfseen.studies.builtin import ORDER, builtin_study
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
