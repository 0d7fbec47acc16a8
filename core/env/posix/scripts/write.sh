# exact path mode size temp: replaces the file with stdin, which must have size
# bytes: fewer mean that the connection was lost. After a failure the rest is read,
# as podman loses the messages of a program that does not read its input.
trap 'status=$?; [ -z "$tmp" ] || rm -f "$tmp"; [ "$status" -eq 0 ] || cat >/dev/null; printf "\000%d\n" "$status" >&2; exit 0' EXIT
find "$1" "$2"
mode=$3 size=$4 owner=
dir=${path%/*}
if [ -d "$path" ]; then
	die 'Is a directory'
elif [ -e "$path" ]; then
	[ -f "$path" ] || die 'It is a special file, not a regular file'
	old=$(stat -c %a "$path") && owner=$(stat -c %u:%g "$path") || exit 9
	[ $((0$old & 0222)) -ne 0 ] || die 'The file is read-only, change its mode first: Permission denied'
	mode=${mode:-$old}
else
	mkdir -p "${dir:-/}" || exit 9
fi
[ -w "${dir:-/}" ] || die 'Permission denied'
mode=${mode:-$(printf %o $((0644 & ~0$(umask))))}
umask 077
(set -C && : >"$dir/$5") || exit 9
tmp=$dir/$5
cat >"$tmp" || exit 9
[ "$(stat -c %s "$tmp")" = "$size" ] || die 'The content is incomplete'
# chown first: it clears set-id bits.
[ -z "$owner" ] || [ "$(stat -c %u:%g "$tmp")" = "$owner" ] || chown "$owner" "$tmp" 2>/dev/null
chmod "$mode" "$tmp" || exit 9
mv -f "$tmp" "$path" || exit 9
tmp=
