# Common start of the file scripts. The status goes to stderr after a NUL byte:
# without it the connection failed, not the script. Programs' messages are
# matched, so they must be in a fixed language.
export LC_ALL=C
tmp=
trap 'status=$?; [ -z "$tmp" ] || rm -f "$tmp"; printf "\000%d\n" "$status" >&2; exit 0' EXIT
trap 'exit 9' HUP INT TERM

die() {
	printf '%s\n' "$1" >&2
	exit 9
}

# resolve sets path to the absolute path $1 with symbolic links resolved;
# elements that do not exist are kept.
resolve() {
	path= todo=$1 links=0
	while [ -n "$todo" ]; do
		element=${todo%%/*}
		case $todo in
		*/*) todo=${todo#*/} ;;
		*) todo= ;;
		esac
		case $element in
		'' | .) continue ;;
		..)
			path=${path%/*}
			continue
			;;
		esac
		if ! [ -L "$path/$element" ]; then
			path=$path/$element
			continue
		fi
		links=$((links + 1))
		[ "$links" -le 255 ] || die 'Too many levels of symbolic links'
		# The x keeps a newline at the end of the target.
		target=$(readlink -n "$path/$element" && printf x) || exit 9
		target=${target%x}
		case $target in
		/*) path= ;;
		esac
		todo=$target/$todo
	done
	[ -n "$path" ] || path=/
}

# find resolves $2. With $1 set, it must be resolved already.
find() {
	resolve "$2"
	[ -z "$1" ] || [ "$path" = "$2" ] || die 'The path changed after it was checked'
}

meta() {
	stat -c '%f %s %h %Y %y' "$1"
}

# apart refuses $1 if it is one of the other arguments, the workspace roots.
apart() {
	gone=$1
	shift
	for root; do
		[ "$gone" != "$root" ] || die 'It is a root directory of the workspace: Operation not permitted'
	done
}
