#!/bin/sh
# Makes a checkout ready to run: .venv with the locked dependencies, and Java 17 or later.
# Called by `make setup`; run again, it does only what is missing. PYTHON=... chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() { # quiet; what apt said is shown only if it fails
    log=$(mktemp)
    if (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@") \
        >"$log" 2>&1; then
        rm -f "$log"
    else
        tail -n 5 "$log" >&2
        rm -f "$log"
        return 1
    fi
}

# --- Python -----------------------------------------------------------------------------------------------------------

python_between() { # interpreter, lowest and lowest excluded minor version; a name on PATH may be a shim that does not run
    "$1" -c "import sys; sys.exit(not (3, $2) <= sys.version_info[:2] < (3, $3))" >/dev/null 2>&1
}

find_python() { # versions that all locked wheels exist for come first
    for below in 15 99; do
        for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
            if python_between "$python" 11 "$below"; then
                echo "$python"
                return
            fi
        done
    done
    return 1
}

make_venv() {
    if "$1" -m venv --clear .venv >/dev/null 2>&1; then return; fi
    if can_apt; then # Debian keeps ensurepip in a package of its own
        version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        say "installing python$version-venv"
        apt_install "python$version-venv" && "$1" -m venv --clear .venv >/dev/null && return
    fi
    fail "$1 cannot create .venv: install its venv module (on Debian and Ubuntu: apt install python3-venv)"
}

if ! python_between .venv/bin/python 11 99 || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python) || fail "Python 3.11 or later is needed and none was found: install it, or name it with PYTHON=/path/to/python3"
    say "creating .venv with $("$python" --version 2>&1)"
    make_venv "$python"
fi

# --- Java -------------------------------------------------------------------------------------------------------------

java_command() { # the one Spark takes
    if [ -n "${JAVA_HOME:-}" ]; then echo "$JAVA_HOME/bin/java"; else echo java; fi
}

java_major() { # 17 for 'version "17.0.2"', 8 for 'version "1.8.0"', nothing where there is no Java
    "$(java_command)" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1
}

java_fits() { major=$(java_major) && [ "${major:-0}" -ge 17 ]; }

if ! java_fits; then
    if [ -n "${JAVA_HOME:-}" ]; then
        fail "JAVA_HOME=$JAVA_HOME holds no Java 17 or later, which Spark needs: set it to one that does, or unset it"
    elif can_apt; then
        say "installing Java"
        apt_install openjdk-17-jre-headless || apt_install default-jre-headless || true
    fi
    java_fits || fail "Spark needs Java 17 or later: install a JRE (e.g. openjdk-17-jre-headless) or set JAVA_HOME"
fi

# --- packages ---------------------------------------------------------------------------------------------------------

say "installing the locked dependencies (some 700 MB the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock ||
    fail "pip could not install requirements.lock: see its message above"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e papers ||
    fail "pip could not install nearcast itself: see its message above"

# Python writes no bytecode of its own where PYTHONDONTWRITEBYTECODE is set, and then every start compiles anew.
.venv/bin/python -m compileall -q -j 0 .venv/lib src papers/src >/dev/null 2>&1 || true

say "compiling the kernels (some three minutes, once)"
.venv/bin/python -m nearcast.engine.warmup || say "the kernels could not be compiled now: the first run will do it"

say "ready"
