# dir addDir...: describes the userland.
uname -s || exit 9
uname -r || exit 9
if [ -x /bin/bash ]; then echo bash; else echo sh; fi
command -v readlink >/dev/null || die 'The program readlink is missing'
enter() {
	cd "$1" 2>/dev/null && return
	[ -e "$1" ] || die "the directory $1: No such file or directory"
	[ -d "$1" ] || die "the directory $1: Not a directory"
	die "the directory $1: Permission denied"
}
resolve "${1:-$(pwd -P)}"
dir=$path
[ $# -eq 0 ] || shift
printf '%s\000%s\000' "${HOME-}" "$dir"
enter "$dir"
for root; do
	case $root in
	/*) resolve "$root" ;;
	*) resolve "$dir/$root" ;;
	esac
	enter "$path"
	printf '%s\000' "$path"
done
printf '\000'
# What the user tells git to ignore in all repositories.
cd -P "$dir"
file=$(git config --type=path --get core.excludesFile 2>/dev/null </dev/null) || file=${XDG_CONFIG_HOME:-${HOME-}/.config}/git/ignore
if [ -f "$file" ] && [ -r "$file" ]; then head -c 1048576 "$file"; fi
printf '\000'
unset LC_ALL
env
