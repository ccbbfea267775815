#!/usr/bin/env python3
"""Holds the line apps -> cuda -> core -> gguf: a folder includes only itself and what stands to its right.

Includes are written from the top of the tree ("core/engine.h"). tests/ may include everything, nothing includes tests/.
"""
import pathlib
import re
import sys

LINE = ["apps", "cuda", "core", "gguf"]
TOP_LEVEL = {"CMakeLists.txt", "CMakePresets.json", "README.md", "models.md", *LINE, "tests", "scripts"}
IGNORED = {"build", "models"}  # git-ignored
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".inl"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def check(root: pathlib.Path) -> list[str]:
    faults = [f"{entry.name}: not a part of the top level"
              for entry in root.iterdir()
              if not entry.name.startswith(".") and entry.name not in TOP_LEVEL | IGNORED]
    for folder_index, folder in enumerate(LINE):
        allowed = LINE[folder_index:]
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(text)
                if match and match[1].split("/")[0] not in allowed:
                    where = f"{path.relative_to(root)}:{number}"
                    faults.append(f'{where}: includes "{match[1]}"; {folder} may include only {", ".join(allowed)}')
    return faults


if __name__ == "__main__":
    tree = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = check(tree)
    print("\n".join(found) or "the line apps -> cuda -> core -> gguf holds")
    sys.exit(1 if found else 0)
