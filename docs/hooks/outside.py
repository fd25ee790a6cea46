"""MkDocs hook: files of the repository that are outside docs/, as pages of the site.

A README of a package or example becomes a page at its own path, and so does each source file that a page links to.
Links stay in the pages as they are in the repository; this hook rewrites them while the site is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    *sorted(
        path.relative_to(ROOT).as_posix()
        for folder in ("plugins", "examples")
        for path in (ROOT / folder).glob("*/README.md")
    ),
)
"""Markdown files that the navigation has beside those of docs/."""
PLACES = {
    "README.md": "index.md",
    "plugins/pv-runs/src/pv_runs/metrics.csv": "reference/metrics.md",
    "plugins/pv-runs/src/pv_runs/plan/assumed.py": "reference/pv_runs.md",
    "plugins/pv-runs/src/pv_runs/sentinel/detectors.py": "reference/signs.md",
    "plugins/pv-runs/src/pv_runs/sentinel/settings.py": "reference/pv_runs.md",
    "src/pv_rules/__init__.py": "reference/rules.md",
}
"""Files that another page replaces on the site."""
LINK = re.compile(r"(?<=\]\()(?![a-zA-Z]+:|[#/])([^)\s#]+)")
FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/, and the source files that any page links to."""
    for path in PAGES:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    sources = {
        target
        for file in files.documentation_pages()
        for target in _targets(file.content_string, _home(file.src_uri))
        if not target.startswith("docs/") and target not in PAGES and target not in PLACES
    }
    for target in sorted(sources):
        files.append(
            File.generated(
                config, f"{target}.md", content=_source(target), inclusion=InclusionLevel.NOT_IN_NAV
            )
        )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point each relative link to where its target is on the site."""
    here = page.file.src_uri
    home = _home(here)
    if page.file.inclusion == InclusionLevel.NOT_IN_NAV:
        return markdown  # the text of a source file
    return _outside_fences(
        markdown, lambda text: LINK.sub(lambda link: _rewritten(link[1], here, home), text)
    )


def _home(src_uri: str) -> str:
    """Path in the repository of a page of the site."""
    return src_uri if src_uri in PAGES else f"docs/{src_uri}"


def _rewritten(link: str, here: str, home: str) -> str:
    target = normpath(join(dirname(home), link))
    if target.startswith("docs/"):
        place = target.removeprefix("docs/")
    else:
        place = PLACES.get(target, target if target in PAGES else f"{target}.md")
    return relpath(place, dirname(here) or ".")


def _targets(markdown: str, home: str) -> Iterable[str]:
    text = FENCE.sub("", markdown)
    return (normpath(join(dirname(home), link)) for link in LINK.findall(text))


def _outside_fences(markdown: str, change: Any) -> str:
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _source(path: str) -> str:
    """A page that shows a text file, or lists the files of a folder."""
    target = (ROOT / path).resolve()
    if not target.is_relative_to(ROOT) or not target.exists():
        raise PluginError(f"a page links to {path}, which is not in the repository. Correct the link.")
    if target.is_dir():
        names = sorted(file.name for file in target.iterdir() if file.is_file())
        return f"# {path}\n\n" + "".join(f"- `{name}`\n" for name in names)
    language = {".py": "python", ".yaml": "yaml", ".sh": "bash"}.get(target.suffix, "text")
    try:
        text = target.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise PluginError(f"a page links to {path}, which is no text. Move it into docs/.") from None
    return f"# {path}\n\n``````{language}\n{text}``````\n"
