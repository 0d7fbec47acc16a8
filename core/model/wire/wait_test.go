package wire_test

import (
	"testing"
	"time"

	"github.com/seed-009c0928/agent/core/model/wire"
)

// TestWaitInTheBody checks where the time to wait is found in error bodies.
func TestWaitInTheBody(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"error":{"message":"Please try again in 7m12.5s."}}`:                                           432500 * time.Millisecond,
		`{"error":{"message":"Rate limit exceeded. Try again in 20 seconds"}}`:                           20 * time.Second,
		`{"error":{"message":"Please retry after 1 minute and 5 seconds."}}`:                             65 * time.Second,
		`{"error":{"message":"Please wait 58 seconds before retrying."}}`:                                58 * time.Second,
		`{"error":{"message":"no","metadata":{"headers":{"Retry-After":"9"}}}}`:                          9 * time.Second,
		`{"error":{"message":"no","retry_after":1.5}}`:                                                   1500 * time.Millisecond,
		`{"message":"no","retry_after_ms":250}`:                                                          250 * time.Millisecond,
		`{"error":{"message":"no","details":[{"@type":"x"},{"@type":"RetryInfo","retryDelay":"3.5s"}]}}`: 3500 * time.Millisecond,
		`try again in 2 hours`:                                       2 * time.Hour,
		`{"error":{"message":"Limit 30 s, used 20 s."}}`:             0,
		`{"error":{"message":"try again in 99999999999999999999h"}}`: 0,
		`{"retry_after":-4}`:                                         0,
		`{"retry_after":"soon"}`:                                     0,
		``:                                                           0,
	} {
		if got := wire.ParseFault([]byte(body)).RetryAfter; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}
