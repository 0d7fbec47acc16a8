package agent

import (
	"os"
	"strings"

	"github.com/seed-009c0928/agent/sdk"
)

// ReaderFlag makes the test binary a plugin with the tool read_all.
const ReaderFlag = "-serve-reader"

// ServeReader serves that plugin. The tool returns the contents of the files that it
// can read.
func ServeReader() {
	type files struct {
		Paths []string `json:"paths"`
	}
	sdk.Serve(sdk.Plugin{Name: "reader", Version: "1.0.0"}, sdk.Tool("read_all", "Read files.", func(_ *sdk.Context, in files) (string, error) {
		var all strings.Builder
		for _, path := range in.Paths {
			data, err := os.ReadFile(path)
			if err == nil {
				all.Write(data)
			}
		}
		return all.String(), nil
	}))
}
