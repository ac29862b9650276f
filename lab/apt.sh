# SPDX-License-Identifier: MIT
# Sourced after lib.sh: packages of any release and architecture, without
# root and without a change to the machine's apt. The mirrors are those that
# the machine's own apt uses; lists and packages lie in the cache.
# shellcheck shell=bash disable=SC2154

codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# apt_private RELEASE ARCH TOOL ARGS...
apt_private() {
	local dir=$cache/apt/$1-$2 arch=$2 tool=$3
	shift 3
	"$tool" -qq -o Dir::State="$dir" -o Dir::State::status="$dir/status" \
		-o Dir::Cache="$dir" -o Dir::Etc::SourceParts="$dir/none" \
		-o Dir::Etc::SourceList="$dir/sources.list" \
		-o Dir::Etc::Preferences="$dir/none/preferences" \
		-o Dir::Etc::PreferencesParts="$dir/none" \
		-o APT::Architecture="$arch" -o APT::Architectures="$arch" \
		-o APT::Sandbox::User=root -o APT::Update::Error-Mode=any \
		-o Acquire::Retries=2 -o Acquire::http::Timeout=20 "$@"
}

# apt_sources RELEASE: the machine's Debian mirrors. apt itself reads the
# settings, so their format does not matter; another release is taken from
# where this machine's own comes from.
apt_sources() {
	local key='' uri suite
	[[ -r $keyring ]] && key="[signed-by=$keyring]"
	apt-get indextargets --format "\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
		'Created-By: Packages' | sort -u |
	while read -r uri suite component; do
		[[ $component == main ]] || continue
		if [[ $1 == "$codename" ]]; then
			[[ $suite == "$codename"* ]] || continue
		else
			[[ $suite == "$codename" ]] || continue
			suite=$1
		fi
		printf '%s %s %s %s main\n' deb "$key" "$uri" "$suite" \
			deb-src "$key" "$uri" "$suite"
	done
}

# apt_update RELEASE ARCH: fetches the lists
apt_update() {
	local dir=$cache/apt/$1-$2
	mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/none"
	: >>"$dir/status"
	apt_sources "$1" >"$dir/sources.list"
	apt_private "$1" "$2" apt-get update >/dev/null && touch "$dir/updated"
}

# apt_source RELEASE ARCH PACKAGE VERSION: its newest source of the VERSION, 10.2
# say, that the mirror really has: lists can name what it does not serve.
apt_source() {
	local version
	apt_private "$1" "$2" apt-cache showsrc "$3" |
		grep -E "^Version: ([0-9]+:)?${4//./\\.}[.+~-]" | sort -Vr | {
		while read -r _ version; do
			apt_private "$1" "$2" apt-get source --download-only \
				"$3=$version" && exit
			rm -f "$3"_*
		done
		echo "no $3 $4 is served"
		exit 1
	}
}

# fetch PACKAGE [RELEASE [ARCH [VERSION]]]: prints the path of its newest .deb, or,
# with ARCH "source", of its .dsc, and that of the newest of VERSION, if given. What
# was fetched once stays pinned until `make update`.
fetch() {
	local pkg=$1 release=${2:-$codename} arch=${3:-arm64}
	local dir=$cache/deb/$release-$arch lists=$arch tmp file
	local pin=$dir/$pkg${4:+-$4} what=$pkg${4:+ $4} ext=deb
	local get=(apt_private "$release" "$lists" apt-get download "$pkg")
	if [[ -e $pin ]]; then
		readlink -f "$pin"
		return
	fi
	if [[ $arch == source ]]; then
		lists=arm64 ext=dsc
		get=(apt_private "$release" "$lists" apt-get source
			--download-only "$pkg")
		[[ ! ${4:-} ]] || get=(apt_source "$release" "$lists" "$pkg" "$4")
	fi
	mkdir -p "$dir"
	# Two runs at once fetch it once.
	exec 8>"$cache/deb/lock"
	flock 8
	if [[ ! -e $pin ]]; then
		tmp=$(mktemp -d "$dir/tmp.XXXXXX")
		fetched() { du -sm "$tmp" | awk '{ printf "%d MB", $1 }'; }
		export -f apt_private apt_update apt_source apt_sources
		export cache codename keyring
		# Lists can be older than what the mirror still has.
		# shellcheck disable=SC2016
		run "fetching $what" fetched "$cache/deb/log" bash -c '
			cd "$1" || exit
			[[ -e $cache/apt/$2-$3/updated ]] && "${@:4}" && exit
			apt_update "$2" "$3" && "${@:4}"
		' - "$tmp" "$release" "$lists" "${get[@]}" || {
			rm -rf "$tmp"
			tail -n 3 "$cache/deb/log" >&2
			die "cannot fetch package $what ($release): is the" \
				"network, and a mirror in apt's settings, there?"
		}
		file=$(basename "$tmp"/*."$ext")
		rm -f "$dir/${pkg}"_*
		mv "$tmp"/* "$dir/"
		rmdir "$tmp"
		ln -sfn "$file" "$pin"
	fi
	exec 8>&-
	readlink -f "$pin"
}

# fetch_kernel VERSION: the source of a kernel, as fetch prints it. VERSION is as
# in the names of this release's packages linux-source-VERSION; or 7.x, the
# newest in experimental, which the package without a version names.
fetch_kernel() {
	local package
	if [[ $1 != *.x ]]; then
		fetch "linux-source-$1"
		return
	fi
	package=$(fetch linux-source experimental)
	package=$(dpkg-deb -f "$package" Depends |
		grep -o 'linux-source-[0-9.]*' | head -n 1)
	[[ $package == linux-source-${1%x}* ]] ||
		die "the newest kernel source of experimental is $package, no $1"
	fetch "$package" experimental
}
