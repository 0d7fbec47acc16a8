# exact from to root...
exact=$1
find "$exact" "$2"
from=$path
find "$exact" "$3"
to=$path
shift 3
apart "$from" "$@"
meta "$from" >/dev/null || exit 9
[ "$from" != "$to" ] || exit 0
[ ! -d "$to" ] || die 'File exists'
parent=${to%/*}
meta "${parent:-/}" >/dev/null || exit 9
mv -f "$from" "$to" || exit 9
