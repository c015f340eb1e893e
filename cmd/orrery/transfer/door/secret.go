package door

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Secret returns what env:NAME or file:PATH refer to; "" for "". No error shows a secret.
func Secret(ref string) (string, error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch {
	case ref == "":
		return "", nil
	case kind == "env":
		v := os.Getenv(name)
		if v == "" {
			return "", fmt.Errorf("the variable %s, which should have the key, is empty", name)
		}
		return v, nil
	case kind == "file":
		raw, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("the key can't be read: %w", err)
		}
		if v := strings.TrimSpace(string(raw)); v != "" {
			return v, nil
		}
		return "", fmt.Errorf("%s, which should have the key, is empty", name)
	}
	return "", errors.New("a key on the command line is refused, because other users see it: want env:NAME or " +
		"file:PATH")
}
