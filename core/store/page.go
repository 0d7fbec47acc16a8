package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Page returns up to n sessions in dir, the last changed first, for which keep
// returns true, and the cursor of the next page; it is empty after the last. An empty
// cursor is the first page. A session that changes meanwhile may be left out of the
// following pages, as it belongs before them. Files that cannot be read are skipped.
func Page(dir, cursor string, n int, keep func(Summary) bool) (page []Summary, next string, err error) {
	files, err := logs(dir)
	if err != nil {
		return nil, "", err
	}
	slices.SortStableFunc(files, func(a, b logInfo) int { // by ID, too: pages must fit together
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), strings.Compare(a.id, b.id))
	})
	if cursor != "" {
		changed, id, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		files = slices.DeleteFunc(files, func(f logInfo) bool {
			return cmp.Or(changed.Compare(f.info.ModTime()), strings.Compare(f.id, id)) <= 0
		})
	}
	lines := newLineReaderSize(nil, headChunk)
	for _, f := range files {
		s, err := f.head(lines)
		if err != nil || !keep(s) {
			continue
		}
		if len(page) == n {
			last := page[n-1]
			return page, fmt.Sprintf("%d-%s", last.Time.UnixNano(), last.ID), nil
		}
		page = append(page, s)
	}
	return page, "", nil
}

func parseCursor(cursor string) (changed time.Time, id string, err error) {
	text, id, ok := strings.Cut(cursor, "-")
	nano, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return changed, "", fmt.Errorf("cursor %q: %w", cursor, errCursor)
	}
	return time.Unix(0, nano), id, nil
}

var errCursor = errors.New("it is not from an earlier page")
