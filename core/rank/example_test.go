package rank_test

import (
	"fmt"

	"github.com/seed-009c0928/agent/core/rank"
)

func Example() {
	tools := rank.New(rank.Field{Name: "name", Weight: 3}, rank.Field{Name: "description", Weight: 1})
	tools.Put("create_issue", "create_issue", "Open a new issue in a repository.")
	tools.Put("list_pull_requests", "list_pull_requests", "List the pull requests of a repository.")
	tools.Put("mergePR", "mergePR", "Merge a pull request.")

	for _, hit := range tools.Search("merging pull requests", 2) {
		fmt.Print(hit.ID, ":")
		for _, term := range hit.Terms {
			fmt.Print(" ", term.Text)
		}
		fmt.Println()
	}
	// Output:
	// mergePR: merg pull request
	// list_pull_requests: pull request
}
