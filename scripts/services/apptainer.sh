#!/usr/bin/env bash
# Unpacks Debian unstable's Apptainer beside its own C library (the system stays as it is) and prints the line that leads to it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${BATCH_RUNNER_APPTAINER_FOLDER:-/var/tmp/batch-runner-apptainer}
root=$folder/root
binary=$root/usr/bin/apptainer

found() {
  echo "export BATCH_RUNNER_APPTAINER=$1"
  exit 0
}
if "${BATCH_RUNNER_APPTAINER:-apptainer}" --version >/dev/null 2>&1; then
  found "$(command -v "${BATCH_RUNNER_APPTAINER:-apptainer}")"
fi

mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
# The configuration is written last: a half-made one has none of ours.
if grep -qs '^# tests of batch-runner$' "$root/etc/apptainer/apptainer.conf" && "$binary" --version >/dev/null 2>&1; then
  found "$binary"
fi

echo "apptainer: unpacking it to $folder" >&2
bash "$here/packages.sh" patchelf mksquashfs=squashfs-tools flock=util-linux
mirror=$(grep -hE '^(deb |URIs:)' /etc/apt/sources.list /etc/apt/sources.list.d/debian* 2>/dev/null | grep -oE 'https?://[^ ]+' | grep -v security | head -n 1 || true)
apt=$folder/apt
rm -rf "$root" "$apt"
mkdir -p "$root" "$apt"/{lists/partial,cache/archives/partial,debs}
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-https://deb.debian.org/debian} sid main" >"$apt/sources.list"
options=(-qq -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$apt/lists"
  -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update >&2 9>&-
(cd "$apt/debs" && apt-get "${options[@]}" download apptainer libc6 libseccomp2 libsqlite3-0 >&2 9>&-)
for package in "$apt"/debs/*.deb; do dpkg -x "$package" "$root"; done
rm -rf "$apt"

libraries=$(dirname "$(find "$root/usr/lib" -name 'libc.so.6' | head -n 1)")
loader=$(find "$libraries" -maxdepth 1 -name 'ld-linux*.so.*' | head -n 1)
for program in "$binary" "$libraries/apptainer/bin/starter"; do
  patchelf --set-interpreter "$loader" "$program"
  patchelf --force-rpath --set-rpath "$libraries" "$program"
done
# It looks for its configuration and its mount point beside itself.
ln -sfn ../etc "$root/usr/etc"
ln -sfn ../../etc "$root/usr/lib/etc"
mkdir -p "$root/usr/lib/var/lib/apptainer/mnt/session" "$root/usr/var/lib/apptainer/mnt/session"
# There may be no systemd here, and root may lack the capabilities that it would otherwise ask for.
sed -i 's/^systemd cgroups = .*/systemd cgroups = no/; s/^root default capabilities = .*/root default capabilities = no/' \
  "$root/etc/apptainer/apptainer.conf"
"$binary" --version >&2
echo '# tests of batch-runner' >>"$root/etc/apptainer/apptainer.conf"
found "$binary"
