#!/usr/bin/env bash
# Fills the registries of docker.sh's engine and registry.sh with the images of the tests, and leaves none of them in the engine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${BATCH_RUNNER_IMAGES:-/var/tmp/batch-runner-images}
: "${DOCKER_HOST:?is set by docker.sh}" "${TEST_REGISTRY:?is set by registry.sh}" "${TEST_PRIVATE_REGISTRY:?is set by registry.sh}"
repository=$TEST_REGISTRY/batch-runner
private_repository=$TEST_PRIVATE_REGISTRY/batch-runner
# The name of the last image that is pushed: who finds it finds all, made by this very script.
recipe=$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-16)

# exists <registry> <name> <tag> [options of curl...]
exists() {
  curl -sf -o /dev/null --max-time 10 --head "${@:4}" \
    -H 'Accept: application/vnd.docker.distribution.manifest.v2+json' "http://$1/v2/batch-runner/$2/manifests/$3"
}
complete() { exists "$TEST_REGISTRY" recipe "$recipe" && exists "$TEST_PRIVATE_REGISTRY" busybox 1 --user tester:secret; }

if command -v curl >/dev/null && complete; then exit 0; fi
bash "$here/packages.sh" dockerd=docker.io curl debootstrap
# A busybox that needs libraries would not run in an image of its own.
if [ ! -x /bin/busybox ] || ldd /bin/busybox >/dev/null 2>&1; then bash "$here/packages.sh" busybox-static; fi
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
if complete; then exit 0; fi
echo "images: making those of the tests" >&2

work=$folder/work
# An interrupted debootstrap may leave /proc mounted there.
clean() { umount "$work/debian/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"; }
images=()
finish() {
  wait
  [ ${#images[@]} -eq 0 ] || docker rmi --force "${images[@]}" >/dev/null || true
  clean
}
clean
mkdir "$work"
trap finish EXIT
# The client of the same package as the engine: a newer one beside it may not speak its version of the API. Its logins stay here.
docker() { DOCKER_CONFIG="$work/client" DOCKER_BUILDKIT=0 /usr/bin/docker "$@" 9>&-; }

# Debian takes longest, so it starts first.
contents=python3-minimal,bash
debian=$folder/bookworm,$contents.tar
make_debian() {
  local mirror root=$work/debian
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian* 2>/dev/null |
    grep -E '^(deb |URIs:)' | grep -oE 'https?://[^ ]+' | grep -v security | head -n 1) || true
  PATH=$PATH:/usr/sbin debootstrap --variant=minbase --include="$contents" bookworm "$root" \
    "${mirror:-http://deb.debian.org/debian}" >"$folder/debootstrap.log" 2>&1 || { tail -n 20 "$folder/debootstrap.log" >&2; return 1; }
  mkdir -p "$root/work"
  tar -C "$root" --exclude=./{dev,var/cache/apt,var/lib/apt/lists,usr/share/{doc,locale,man}}/'*' -cf "$debian.new" .
  mv "$debian.new" "$debian"
}
debian_job=
if [ ! -e "$debian" ]; then
  make_debian 9>&- &
  debian_job=$!
fi

# import <name> <folder or tar file> <instructions of a Dockerfile...>
import() {
  local image=$repository/$1:1 source=$2 instruction changes=()
  for instruction in "${@:3}"; do changes+=(--change "$instruction"); done
  if [ -d "$source" ]; then tar -C "$source" -c .; else cat "$source"; fi |
    docker import "${changes[@]}" - "$image" >/dev/null
  push "$image"
}
# without <name> <file...>: Debian less some of its files
without() {
  printf 'FROM %s/python:1\nRUN rm -f %s\n' "$repository" "${*:2}" |
    docker build --quiet --force-rm --network none --tag "$repository/$1:1" - >/dev/null
  push "$repository/$1:1"
}
push() {
  images+=("$1")
  docker push --quiet "$1" >/dev/null
}

root=$work/busybox
mkdir -p "$root"/{bin,dev,etc,proc,root,sys,tmp,work}
chmod 755 "$root"
chmod 700 "$root/root"
chmod 1777 "$root/tmp"
cp /bin/busybox "$root/bin/"
for applet in $(/bin/busybox --list); do
  [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
import busybox "$root" 'ENV PATH=/bin' 'WORKDIR /work' 'CMD ["/bin/sh"]'
import entrypoint "$root" 'ENV PATH=/bin' 'WORKDIR /work' 'ENTRYPOINT ["/bin/sh","-c","echo from the entrypoint; exit 7"]' 'CMD ["ignored"]'
import env "$root" 'ENV PATH=/bin' 'ENV GREETING=hello' 'WORKDIR /srv/app' 'LABEL org.example.suite=batch-runner' 'CMD ["/bin/sh"]'

mkdir -p "$root/home/agent"
chmod 700 "$root/home/agent"
echo 'agent:x:1000:1000::/home/agent:/bin/sh' >>"$root/etc/passwd"
echo 'agent:x:1000:' >>"$root/etc/group"
chown 1000:1000 "$root/home/agent"
as_agent=('ENV PATH=/bin HOME=/home/agent' 'USER agent' 'CMD ["/bin/sh"]')
import user "$root" "${as_agent[@]}" 'WORKDIR /home/agent'
chown 0:0 "$root/home/agent"
chmod 755 "$root/home/agent" "$root/tmp"
import sealed "$root" "${as_agent[@]}" 'WORKDIR /home/agent'

root=$work/noshell
mkdir -p "$root"/{app,dev,etc,proc,sys}
chmod 755 "$root"
cp /bin/busybox "$root/app/busybox"
import noshell "$root" 'WORKDIR /app' 'ENTRYPOINT ["/app/busybox"]' 'CMD ["echo","hello"]'

# An honest stranger: its program too is marked as one for arm64, so that no kernel but such a one runs it. Debian's engine
# imports and builds for its own architecture whatever it is told, but loads others.
root=$work/foreign
mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp}
chmod 755 "$root"
cp /bin/busybox "$root/bin/sh"
printf '\xb7' | dd of="$root/bin/sh" bs=1 seek=18 conv=notrunc status=none
mkdir "$work/load"
tar -C "$root" -cf "$work/load/layer.tar" .
cat >"$work/load/config.json" <<END
{"architecture":"arm64","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":["/bin/sh"]},
 "rootfs":{"type":"layers","diff_ids":["sha256:$(sha256sum "$work/load/layer.tar" | cut -d ' ' -f 1)"]}}
END
echo "[{\"Config\":\"config.json\",\"RepoTags\":[\"$repository/foreign:1\"],\"Layers\":[\"layer.tar\"]}]" >"$work/load/manifest.json"
tar -C "$work/load" -c . | docker load >/dev/null
push "$repository/foreign:1"

echo secret | docker login --username tester --password-stdin "$TEST_PRIVATE_REGISTRY" >/dev/null 2>&1
docker tag "$repository/busybox:1" "$private_repository/busybox:1"
push "$private_repository/busybox:1"

[ -z "$debian_job" ] || wait "$debian_job" || { echo "images: Debian could not be made" >&2; exit 1; }
import python "$debian" 'WORKDIR /work' 'CMD ["/bin/bash"]'
without notimeout /usr/bin/timeout
without dash /bin/bash /bin/rbash

docker tag "$repository/busybox:1" "$repository/recipe:$recipe"
push "$repository/recipe:$recipe"
