"""Install the wheel and the sdist of dist/ into fresh environments and try them: `make test-dist`.

Arguments are versions of Python ("3.12"), or "this" for the one that runs; without any, all that
pyproject.toml lists. A version is looked for on the PATH and among those of pyenv. Missing ones are
reported; at least one must be found.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "halfseen"
NEEDED = ("Makefile", "pyproject.toml", "locks/base.txt", "tests/base_install.py", "docs/agent.md")
SHOW_INSTALLED = "import halfseen; print(halfseen.__version__, halfseen.__file__)"


def the_only(pattern: str) -> Path:
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist/ must have one {pattern}, has {[path.name for path in found]}: make dist")
    return found[0]


def check_contents(wheel: Path, sdist: Path) -> None:
    """Check that the wheel is the package and nothing else, and that the sdist can test it."""
    sources = {f"halfseen/{name}" for name in contents(PACKAGE)}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == sources, f"the wheel differs from src/: {sorted(names ^ sources)}"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {f"src/{name}" for name in sources} | set(NEEDED)
    assert wanted <= names, f"the sdist lacks {sorted(wanted - names)}"
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")


def listed_versions() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))


def find_python(version: str) -> str | None:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(pyenv.glob(f"{version}.*/bin/python"))
    on_path = shutil.which(f"python{version}")
    for python in [*([on_path] if on_path else []), *map(str, reversed(installed)), sys.executable]:
        asked = [python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:  # a shim of pyenv may exist and not work
            return python
    return None


def install(python: str, dist: Path, locks: Path, folder: Path) -> tuple[str, Path]:
    """Install `dist` into a new environment; return its interpreter and the package's folder."""
    run = subprocess.check_call
    run([python, "-m", "venv", folder])
    inside = str(folder / "bin" / "python")
    pip = [inside, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "-q", "--require-hashes", "-r", locks / "base.txt"])
    run([*pip, "install", "-q", "--no-index", "--no-build-isolation", dist])
    run([*pip, "check"])
    shown = subprocess.check_output([inside, "-c", SHOW_INSTALLED], text=True, cwd=folder)
    version, _, file = shown.strip().partition(" ")
    assert f"-{version}" in dist.name, f"{dist.name} installed version {version}"
    assert Path(file).is_relative_to(folder), f"{file} is not the installed package"
    return inside, Path(file).parent


def contents(package: Path) -> dict[str, bytes]:
    files = (path for path in package.rglob("*") if path.is_file())
    return {
        path.relative_to(package).as_posix(): path.read_bytes()
        for path in files
        if path.parent.name != "__pycache__"
    }


def try_both(python: str, wheel: Path, unpacked: Path, sdist: Path, folder: Path) -> None:
    """Run tests/base_install.py on the wheel, and check that the sdist installs the same files."""
    locks = unpacked / "locks"
    inside, package = install(python, wheel, locks, folder / "wheel")
    subprocess.check_call(
        [inside, "-W", "error", unpacked / "tests" / "base_install.py"], cwd=folder
    )
    _, again = install(python, sdist, locks, folder / "sdist")
    assert contents(package) == contents(again), "the sdist installs other files than the wheel"
    print("ok: the sdist installs the same files", flush=True)


def main(versions: list[str]) -> None:
    wheel, sdist = the_only("*.whl"), the_only("*.tar.gz")
    check_contents(wheel, sdist)
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    wanted = [this if version == "this" else version for version in versions] or listed_versions()
    found = {version: find_python(version) for version in wanted}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch).resolve()
        shutil.unpack_archive(sdist, folder)
        unpacked = folder / sdist.name.removesuffix(".tar.gz")
        for version, python in found.items():
            if python is None:
                print(f"Python {version}: not found, skipped", flush=True)
                continue
            print(f"Python {version}", flush=True)
            try_both(python, wheel, unpacked, sdist, folder / version)
    if not any(found.values()):
        sys.exit("no Python was found")


if __name__ == "__main__":
    main(sys.argv[1:])
