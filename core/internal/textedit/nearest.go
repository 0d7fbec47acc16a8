package textedit

// Nearest returns the number, from 1, of the line where the lines most similar
// to the wanted ones begin, and those lines with some context; 0 if none are.
func (t *Text) Nearest(wanted []string) (at int, found []string) {
	const most = 5_000_000 // comparisons; more would take too long
	if len(t.Lines)*len(wanted) > most {
		return 0, nil
	}
	have, want := make([]string, len(t.Lines)), make([]string, len(wanted))
	for i, l := range t.Lines {
		have[i] = Punctuation.Normal(l.Text)
	}
	for i, l := range wanted {
		want[i] = Punctuation.Normal(l)
	}
	best := 0
	for i := range have {
		score := 0
		for j := range want {
			if i+j < len(have) {
				score += alike(have[i+j], want[j])
			}
		}
		if score > best {
			best, at = score, i+1
		}
	}
	if at == 0 {
		return 0, nil
	}
	from, to := max(0, at-2), min(len(have), at+len(wanted)+1)
	for _, l := range t.Lines[from:min(to, from+12)] {
		found = append(found, l.Text)
	}
	return from + 1, found
}

// alike scores the similarity of two lines: 4 if they are equal, less for a
// common prefix and suffix.
func alike(a, b string) int {
	switch {
	case a == "" || b == "":
		return 0
	case a == b:
		return 4
	}
	n, least := 0, min(len(a), len(b))
	for n < least && a[n] == b[n] {
		n++
	}
	for end := 1; n < least && end <= least && a[len(a)-end] == b[len(b)-end]; end++ {
		n++
	}
	switch longest := max(len(a), len(b)); {
	case 4*n >= 3*longest:
		return 3
	case 2*n >= longest:
		return 2
	case n >= 8:
		return 1
	}
	return 0
}
