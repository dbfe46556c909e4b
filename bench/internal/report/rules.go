package report

import (
	"strings"

	"github.com/cairndb/cairn/bench"
)

// Rules returns the fairness rules of the guide, one a line, without their numbers.
func Rules() []string {
	_, section, _ := strings.Cut(bench.Readme, "\n## Fairness rules\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var rules []string
	for line := range strings.Lines(section) {
		line = strings.TrimRight(line, "\n")
		number, rule, ok := strings.Cut(line, ". ")
		switch {
		case ok && strings.Trim(number, "0123456789") == "" && number != "":
			rules = append(rules, rule)
		case strings.HasPrefix(line, "   ") && len(rules) > 0:
			rules[len(rules)-1] += " " + strings.TrimSpace(line)
		}
	}
	return rules
}
