#!/usr/bin/env bash
# Measures the machine it runs on, fits, verifies and draws: one command on a GPU box that has torch and a package index.
#
#   calibration/measure.sh                                  the first GPU, the drive under this checkout, under 10 minutes
#   calibration/measure.sh --ssd-path /mnt/nvme             another drive
#   calibration/measure.sh --device cpu --quick             the CPU, in a few minutes
#
# Every option is one of `simkv calibrate`. Interrupted, the same command goes on where it ended. The torch of $PYTHON
# (default python3) is used; simkv and what it needs go to $VENV (default .venv-measure), which is kept. Without a
# package index set PIP_NO_INDEX=1 and PIP_FIND_LINKS to a folder of wheels.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-python3}
venv=${VENV:-$root/.venv-measure}
say() { printf '%s\n' "$*" >&2; }

has() { # has OPTION ARGUMENTS...: whether OPTION is among them
  local option=$1 given
  shift
  for given in "$@"; do [[ $given == "$option" || $given == "$option="* ]] && return 0; done
  return 1
}

case ${1:-} in -h | --help)
  sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
  exit 0 ;;
esac

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  { say "simkv needs Python 3.11 or newer; name one that has torch: PYTHON=/path/to/python3 $0"; exit 2; }

if [[ ! -x $venv/bin/simkv ]]; then
  torch=$("$python" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' 2>/dev/null) ||
    { say "$python has no torch: install a build for this machine, or name another: PYTHON=/path/to/python3 $0"; exit 2; }
  say "setting up $venv"
  "$python" -m venv --system-site-packages "$venv"
  "$venv/bin/python" -c 'import torch' 2>/dev/null || # $python is in an environment of its own: look there too
    printf '%s\n' "$torch" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch-there.pth"
  "$venv/bin/python" -m pip install --quiet --editable "$root"
fi

defaults=()
has --device "$@" || defaults+=(--device cuda)
if ! has --ssd-path "$@"; then defaults+=(--ssd-path "$root"); fi

begun=$SECONDS
"$venv/bin/simkv" calibrate --verify "${defaults[@]}" "$@"
say "took $((SECONDS - begun)) s; the profile named under Files, with its picture, is what to keep or send: it holds no paths, no host name"
