# dir addDir...: describes the userland.
uname -s || exit 9
uname -r || exit 9
if [ -x /bin/bash ]; then echo bash; else echo sh; fi
command -v readlink >/dev/null || die 'The program readlink is missing there'
resolve "${1:-$(pwd -P)}"
dir=$path
[ $# -eq 0 ] || shift
printf '%s\000%s\000' "${HOME-}" "$dir"
cd "$dir" || exit 9
for root; do
	case $root in
	/*) resolve "$root" ;;
	*) resolve "$dir/$root" ;;
	esac
	cd "$path" || exit 9
	printf '%s\000' "$path"
done
printf '\000'
unset LC_ALL
env
