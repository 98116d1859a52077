"""The Dockerfile, the conda recipe, the table of dependencies, and the wheel in a new environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def test_the_dockerfile_copies_existing_files_and_runs_as_a_user() -> None:
    steps = instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "USER", "ENV", "ENTRYPOINT", "CMD"}
    assert {name for name, _ in steps} <= known
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for name, arguments in steps:
        if name == "COPY" and "--from" not in arguments:
            for source in arguments.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source}" in ignored, source
    (base,) = [arguments for name, arguments in steps if name == "ARG" and arguments.startswith("BASE=")]
    assert ":" in base  # a fixed version, not latest
    assert {arguments.split()[0] for name, arguments in steps if name == "FROM"} == {"${BASE}"}
    assert [arguments for name, arguments in steps if name == "USER"] == ["user"]
    assert ("ENTRYPOINT", '["eq"]') in steps


def test_the_extras_of_the_dockerfile_exist() -> None:
    (extras,) = [arguments.partition("=")[2] for name, arguments in instructions() if arguments.startswith("EXTRAS=")]
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


BASE_IMAGE = os.environ.get("EQUIPOISE_TEST_IMAGE", "python:3.12-slim")
"""The base image; set EQUIPOISE_TEST_IMAGE to a local one without access to a registry."""


def succeeds(*command: str) -> bool:
    """Whether a program is installed and exits with status 0."""
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def output_of(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_docker_builds_the_image_and_runs_it() -> None:
    if not succeeds("docker", "info"):
        pytest.skip("docker is not running")
    output_of("docker", "build", "--build-arg", f"BASE={BASE_IMAGE}", "-t", "equipoise-test", ".")
    assert "minilm" in output_of("docker", "run", "--rm", "equipoise-test", "ls", "models")


@pytest.mark.slow
def test_buildah_builds_the_image_and_runs_it_as_a_user() -> None:
    """Buildah needs no service, and no kernel features with chroot isolation."""
    if not succeeds("buildah", "pull", "--policy", "missing", BASE_IMAGE):
        pytest.skip("there is no buildah, or no image to build from")
    chroot = ("--isolation", "chroot")
    output_of("buildah", "bud", *chroot, "--build-arg", f"BASE={BASE_IMAGE}", "-t", "equipoise-test", ".")
    container = output_of("buildah", "from", "equipoise-test").strip()
    try:
        assert output_of("buildah", "run", *chroot, container, "--", "id", "-un") == "user\n"
        assert "minilm" in output_of("buildah", "run", *chroot, container, "--", "eq", "ls", "models")
    finally:
        output_of("buildah", "rm", container)
        output_of("buildah", "rmi", "equipoise-test")


def test_the_conda_recipe_has_the_dependencies_of_the_package() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    dependencies = {requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]} - {"python>=3.11"}
    assert dependencies == {re.sub(r"\s", "", requirement_text) for requirement_text in PROJECT["dependencies"]}
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src" / "equipoise" / "__init__.py").read_text())
    assert version is not None
    assert recipe["context"]["version"] == version[1]
    entry_points = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert sorted(recipe["build"]["python"]["entry_points"]) == sorted(entry_points)


@pytest.mark.engines("rattler_build")
def test_rattler_build_renders_the_conda_recipe() -> None:
    rattler_build = pytest.importorskip("rattler_build")
    recipe = rattler_build.Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml"))
    (variant,) = recipe.render(rattler_build.VariantConfig())
    rendered = variant.recipe.to_dict()
    assert rendered["build"]["noarch"] == "python"
    assert rendered["package"] == {"name": "equipoise", "version": recipe.context["version"]}


def test_every_dependency_is_in_the_table_of_licences() -> None:
    script = [sys.executable, str(ROOT / "scripts" / "write_dependencies.py"), "--check"]
    completed = subprocess.run(script, capture_output=True, text=True, check=False)
    assert completed.stdout.strip() == "complete"


def test_all_has_every_extra_of_users() -> None:
    extras = PROJECT["optional-dependencies"]
    included = {name for arguments in extras["all"] for name in re.search(r"\[(.*)\]", arguments)[1].split(",")}  # type: ignore[index]
    developers = {"all", "test", "dev", "bench", "docs", "engines", "peers"}
    assert set(extras) - developers - included == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
@pytest.mark.engines("hatchling")
def test_the_wheel_supports_every_python_version(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata_name,) = [name for name in names if name.endswith("METADATA")]
        metadata = archive.read(metadata_name).decode()
        (entry_points_name,) = [name for name in names if name.endswith("entry_points.txt")]
        entry_points = archive.read(entry_points_name).decode()
    assert "Requires-Python: >=3.11" in metadata
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in metadata
    assert "equipoise.pytest_plugin" in entry_points
    assert any(name.endswith("samples/truth.qrels") for name in names)


@pytest.mark.slow
@pytest.mark.engines("hatchling")
def test_the_wheel_runs_in_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    """As in pipx and uv tool install: a separate environment, with the command called by its path."""
    import venv

    venv.create(tmp_path / "tool", system_site_packages=False, with_pip=False)
    packages = next((tmp_path / "tool" / "lib").iterdir()) / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    python = tmp_path / "tool" / "bin" / "python"
    site_packages = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "dependencies.pth").write_text(f"{site_packages}\n")  # numpy and others, without a download
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    code = "import equipoise, runpy; print(equipoise.__file__); runpy.run_module('equipoise', run_name='__main__')"
    completed = subprocess.run(
        [str(python), "-c", code, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith(str(packages))
