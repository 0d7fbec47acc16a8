# path...: prints where each leads.
for name; do
	resolve "$name"
	printf '%s\000' "$path"
done
