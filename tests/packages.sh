# shellcheck shell=bash
# Sourced by tests/run, deploy/release, docs/pictures/make, tests/benches/peers/run, tests/coverage, tests/services,
# tests/deploy/run and tests/gpu/run: installs missing system packages if it may, creates the Python of the tests, and
# finds NVRTC.

# packages_missing PACKAGE…: prints the missing packages, each followed by a space.
packages_missing() {
  local package
  for package in "$@"; do
    case $package in
      ca-certificates) [[ -e /etc/ssl/certs/ca-certificates.crt ]] || printf '%s ' "$package" ;;
      libc6-dev) [[ -e /usr/include/stdlib.h ]] || printf '%s ' "$package" ;;
      # Every Debian has a part of perl; OpenSSL's configuration needs more.
      perl) perl -MFindBin -MIPC::Cmd -e 1 2>/dev/null || printf '%s ' "$package" ;;
      python3-venv) python3 -c 'import ensurepip' 2>/dev/null || printf '%s ' "$package" ;;
      qemu-user) command -v qemu-x86_64 >/dev/null || printf '%s ' "$package" ;;
      maven) command -v mvn >/dev/null || printf '%s ' "$package" ;;
      llvm-[0-9]*) command -v "llvm-cov-${package#llvm-}" >/dev/null || printf '%s ' "$package" ;;
      systemd) command -v systemd-analyze >/dev/null || printf '%s ' "$package" ;;
      chromium-driver) command -v chromedriver >/dev/null || printf '%s ' "$package" ;;
      # The shared library of Python, in a package that is named by Python's version.
      libpython3-dev) PATH=$PATH:/usr/sbin:/sbin ldconfig -p | grep -q "$(python3 -c 'import sys; print("libpython%d.%d.so.1" % sys.version_info[:2])')" ||
        printf '%s ' "$package" ;;
      g++-*-linux-gnu) command -v "${package#g++-}-g++" >/dev/null || printf '%s ' "$package" ;;
      *-jre-headless) java_is_right || printf '%s ' "$package" ;;
      *) command -v "$package" >/dev/null || printf '%s ' "$package" ;;
    esac
  done
}

# Kafka 4 needs Java 17.
java_is_right() {
  local version
  command -v keytool >/dev/null || return 1
  version=$(java -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
  ((${version:-0} >= 17))
}

# install_packages PACKAGE…: installs the missing packages, or prints what to do.
install_packages() {
  local missing as_root=()
  missing=$(packages_missing "$@")
  [[ -z $missing ]] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "missing: $missing- install the packages of these names (or your system's equivalent) and run again"
    return 1
  fi
  if ((EUID != 0)); then
    if ! sudo -n true 2>/dev/null; then
      echo "missing: run 'sudo apt-get install ${missing% }' and run again"
      return 1
    fi
    as_root=(sudo -n)
  fi
  # Keeps the system from starting services that are installed for tests, such as Prometheus and Redis (RUNLEVEL is for invoke-rc.d).
  # shellcheck disable=SC2086  # A list of words.
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 SYSTEMD_OFFLINE=1 apt-get install -qy --no-install-recommends $missing; }; then
    echo "apt-get could not install: $missing- install them and run again"
    return 1
  fi
}

# install_tool CACHE NAME VERSION [OPTION…]: sets `tool` to a program of the registry, kept in that folder. The build is fast and not optimised,
# because the program runs only for a second.
install_tool() {
  local name=$2 version=$3 tools status=0
  tools=$1/$2-$3-rust-$(rustc --version | cut -d' ' -f2)
  shift 3
  tool=$tools/bin/$name
  [[ -x $tool ]] && return 0
  echo "building $name $version (once, about two minutes)"
  CARGO_TARGET_DIR=$tools/build CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo install --quiet "$name" --locked --version "$version" "$@" --root "$tools" || status=$?
  rm -rf "$tools/build"
  return "$status"
}

# nvrtc_folders PYTHON: the folders in which packages of this Python have NVRTC, a line each. CUDA 13's is nvidia/cu13/lib, and
# nvidia/cuda_nvrtc/lib was CUDA 12's.
nvrtc_folders() {
  "$1" -c '
import glob, os, sys
names = [os.path.join(root, "nvidia", "*", "lib", "libnvrtc.so*") for root in sys.path]
for folder in dict.fromkeys(os.path.dirname(path) for name in names for path in sorted(glob.glob(name))):
    print(folder)'
}

# prepare_python CACHE: creates in that folder a Python with the packages of examples and tests. Called from the root of the clone.
prepare_python() {
  local wanted=(examples/python/requirements.txt tests/requirements.txt) environment
  environment=$1/python-$(cat "${wanted[@]}" | cksum | cut -d' ' -f1)
  if [[ ! -e $environment/ready ]]; then
    rm -rf "$environment"
    if ! python3 -m venv "$environment" ||
      ! "$environment/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]/#/--requirement=}"; then
      echo "${wanted[*]} could not be installed: check that the Python package index can be reached, and run again"
      return 1
    fi
    touch "$environment/ready"
  fi
  export WARPTAPE_TEST_PYTHON=$environment/bin/python
  WARPTAPE_TEST_NVRTC=$(nvrtc_folders "$WARPTAPE_TEST_PYTHON" | head -n 1)
  export WARPTAPE_TEST_NVRTC
  "$WARPTAPE_TEST_PYTHON" --version
}
