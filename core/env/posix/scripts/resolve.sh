# path...: prints each path resolved.
for name; do
	resolve "$name"
	printf '%s\000' "$path"
done
