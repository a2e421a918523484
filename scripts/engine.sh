# shellcheck shell=bash
# A Docker engine with compose and the images that the tests need, also where no registry is reached. Source it
# after lib.sh, with a folder of the caller's in `work`; start_engine, then need_image; stop_engine ends what was
# started.
: "${work:?}" "${ROOT:?}"

ENGINE="$CACHE/engine"
engine_pid=
made_images=()

# start_engine takes the engine that runs, or starts one of its own: with its own socket and data, for as long as the
# caller lives. One such engine runs at a time.
start_engine() {
  if have docker && timeout 10 docker info >/dev/null 2>&1; then
    say "Docker engine $(docker version -f '{{.Server.Version}}')"
  else
    start_own_engine || return 1
  fi
  docker compose version >/dev/null 2>&1 || install_compose
}

start_own_engine() {
  have dockerd docker || apt_install docker.io || return 1
  [ "$(id -u)" = 0 ] || {
    say "no Docker engine runs, and only root can start one"
    return 1
  }
  mkdir -p "$ENGINE/data" "$CACHE/locks"
  exec 8>"$CACHE/locks/engine"
  flock 8 # until the caller ends
  stop_stale_engine
  dockerd -H "unix://$ENGINE/docker.sock" --data-root "$ENGINE/data" --exec-root "$ENGINE/exec" \
    --pidfile "$ENGINE/docker.pid" 8>&- </dev/null >"$ENGINE/log" 2>&1 &
  engine_pid=$!
  export DOCKER_HOST="unix://$ENGINE/docker.sock"
  wait_until 30 docker info >/dev/null 2>&1 || {
    tail -n 15 "$ENGINE/log" >&2
    return 1
  }
  say "Docker engine $(docker version -f '{{.Server.Version}}'), started for this run"
}

# stop_stale_engine ends the engine that a killed run left behind.
stop_stale_engine() {
  local pid
  pid="$(cat "$ENGINE/docker.pid" 2>/dev/null)" || return 0
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && stop_pid "$pid"
  rm -f "$ENGINE/docker.pid"
}

stop_engine() {
  if [ -z "$engine_pid" ]; then
    [ ${#made_images[@]} = 0 ] || docker rmi -f "${made_images[@]}" >/dev/null 2>&1 || true
    return
  fi
  stop_pid "$engine_pid"
  engine_pid=
  umount "$ENGINE/data" 2>/dev/null || true # dockerd mounts it on itself
}

# debian_package NAME FOLDER: unpacks a package of Debian 13, whatever this machine's own release is.
debian_package() {
  local lists="$CACHE/debian13" options
  mkdir -p "$lists/lists/partial" "$lists/archives/partial" "$2"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) trixie main" >"$lists/sources.list"
  options=(-o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$lists/lists"
    -o "Dir::Cache::archives=$lists/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
  (
    cd "$lists/archives"
    rm -f "$1"_*.deb
    apt-get "${options[@]}" update -q && apt-get "${options[@]}" download -q "$1" && dpkg-deb -x "$1"_*.deb "$2"
  ) >"$lists/log" 2>&1 || {
    tail -n 15 "$lists/log" >&2
    return 1
  }
}

# install_compose makes Debian's compose 2 a plugin of the docker command, for this run.
install_compose() {
  local config="$CACHE/docker-config" root="$CACHE/compose"
  if [ ! -x "$config/cli-plugins/docker-compose" ]; then
    say "installing docker compose"
    debian_package docker-compose "$root" || return 1
    mkdir -p "$config/cli-plugins"
    cp "$(find "$root" -type f -name docker-compose -perm -u+x | head -n 1)" "$config/cli-plugins/docker-compose" || return 1
  fi
  export DOCKER_CONFIG="$config"
  docker compose version >/dev/null
}

# need_image NAME MAKER…: the image is there, or is pulled, or is made on this machine under its upstream name.
need_image() {
  local image="$1"
  shift
  docker image inspect "$image" >/dev/null 2>&1 && return
  timeout 300 docker pull -q "$image" >/dev/null 2>&1 && return
  say "making a stand-in for $image"
  "$@" "$image" || return 1
  made_images+=("$image")
}

# import_image FOLDER IMAGE OPTION…: a folder becomes an image.
import_image() {
  local folder="$1" image="$2"
  shift 2
  tar -C "$folder" --numeric-owner -c . | docker import "$@" - "$image" >/dev/null
}

# make_lambda_image IMAGE: what a static binary needs of the base image: a shell, and certificates.
make_lambda_image() {
  local root="$work/lambda-image"
  [ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || apt_install busybox-static || return 1
  mkdir -p "$root"/{bin,etc/ssl/certs,tmp,var/task,var/runtime,opt}
  cp /bin/busybox "$root/bin/busybox"
  for name in sh mv chmod cat ls; do ln -sf busybox "$root/bin/$name"; done
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" || return 1
  chmod 1777 "$root/tmp"
  import_image "$root" "$1" -c 'WORKDIR /var/task' -c 'ENV PATH=/bin LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime'
}

# make_postgres_image IMAGE: Debian 13's Postgres 17 with pgvector, and an entrypoint that knows POSTGRES_*.
# shellcheck disable=SC2016 # mmdebstrap expands $1 in its hooks
make_postgres_image() {
  local root="$work/postgres.tar"
  have mmdebstrap || apt_install mmdebstrap || return 1
  mmdebstrap --quiet --variant=essential --include=postgresql-17,postgresql-17-pgvector \
    --setup-hook='mkdir -p "$1/etc/postgresql-common/createcluster.d"' \
    --setup-hook='echo "create_main_cluster = false" >"$1/etc/postgresql-common/createcluster.d/none.conf"' \
    --customize-hook="install -m 755 '$ROOT/scripts/postgres-entrypoint' \"\$1/usr/local/bin/entrypoint\"" \
    --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/usr/share/doc/* "$1"/usr/share/locale/*' \
    trixie "$root" "$(debian_mirror)" >"$work/postgres-image.log" 2>&1 || {
    tail -n 15 "$work/postgres-image.log" >&2
    return 1
  }
  docker import -c 'ENTRYPOINT ["/usr/local/bin/entrypoint"]' -c 'EXPOSE 5432' \
    -c 'ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/data' - "$1" <"$root" >/dev/null
  rm -f "$root"
}

# make_dynalite_image IMAGE: by its Dockerfile, else of this machine's Node.js with its libraries.
make_dynalite_image() {
  timeout 300 docker build -q -t "$1" "$ROOT/deploy/dynalite" >/dev/null 2>&1 && return
  local root="$work/dynalite-image" home node
  home="$(install_npm deploy/dynalite)" || return 1
  node="$(readlink -f "$(command -v node)")"
  mkdir -p "$root"/{usr/bin,opt/dynalite,tmp,etc}
  cp "$node" "$root/usr/bin/node"
  ldd "$node" | grep -oE '/[^ ]+' | while read -r lib; do
    mkdir -p "$root$(dirname "$lib")" && cp -L "$lib" "$root$lib"
  done
  cp -r "$home/node_modules" "$root/opt/dynalite/"
  echo 'node:x:1000:1000::/tmp:/none' >"$root/etc/passwd"
  import_image "$root" "$1" -c 'WORKDIR /opt/dynalite' -c 'USER 1000' -c 'EXPOSE 8000' -c 'ENV PATH=/usr/bin' \
    -c 'CMD ["node","node_modules/dynalite/cli.js","--host","0.0.0.0","--port","8000","--createTableMs","1"]'
}
