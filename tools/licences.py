"""Print the licence of every package that the development environment has: `make licences`.

Packages that `pip install halfseen` brings come first, those of extras and tools after them.
"""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

NAME = re.compile(r"[\w.-]+")


def licence(package: Distribution) -> str:
    """Return the SPDX expression if there is one, else the classifiers, else the free text."""
    fields = package.metadata
    if expression := fields.get("License-Expression"):
        return expression
    classifiers = fields.get_all("Classifier") or []
    classes = [text.rpartition(" :: ")[2] for text in classifiers if text.startswith("License ::")]
    text = (fields.get("License") or "").strip()
    return "; ".join(classes) or text.partition("\n")[0] or "not stated"


def required_by(name: str) -> set[str]:
    """Return the names of all packages that `name` needs without extras."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in distribution(waiting.pop()).requires or []:
            needed = canonical(NAME.match(line)[0])
            if "extra ==" in line or needed in found:
                continue
            try:
                distribution(needed)
            except PackageNotFoundError:  # for another Python or platform
                continue
            found.add(needed)
            waiting.append(needed)
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    packages = {canonical(package.metadata["Name"]): package for package in distributions()}
    itself = packages.pop("halfseen")
    base = required_by("halfseen")
    print(f"halfseen {itself.version}: {licence(itself)}")
    for title, names in (
        ("pip install halfseen", base),
        ("extras and tools of development", packages.keys() - base),
    ):
        print(f"\n{title}")
        for name in sorted(names):
            print(f"  {name + ' ' + packages[name].version:34} {licence(packages[name])}")


if __name__ == "__main__":
    main()
