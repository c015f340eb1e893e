package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// idLine returns ids as a line of a list. A letter before each tells its type.
func idLine(ids []any) ([]byte, error) {
	line := make([]string, len(ids))
	for i, id := range ids {
		switch v := id.(type) {
		case string:
			line[i] = "s:" + v
		case int32:
			line[i] = "i:" + strconv.FormatInt(int64(v), 10)
		case int64:
			line[i] = "l:" + strconv.FormatInt(v, 10)
		case float64:
			line[i] = "d:" + strconv.FormatFloat(v, 'g', -1, 64)
		case bool:
			line[i] = "b:" + strconv.FormatBool(v)
		case uuid.UUID:
			line[i] = "u:" + v.String()
		default:
			return nil, fmt.Errorf("the id %v is of the type %T, which can't be copied", id, id)
		}
	}
	text, err := json.Marshal(line)
	return append(text, '\n'), err
}

// idOf reads a line of a list: an id, or partition key and id.
func idOf(line []byte) (any, error) {
	var texts []string
	if err := json.Unmarshal(line, &texts); err != nil {
		return nil, err
	}
	ids := make([]any, len(texts))
	for i, t := range texts {
		kind, text, _ := strings.Cut(t, ":")
		var err error
		switch kind {
		case "s":
			ids[i] = text
		case "i":
			var n int64
			n, err = strconv.ParseInt(text, 10, 32)
			ids[i] = int32(n)
		case "l":
			ids[i], err = strconv.ParseInt(text, 10, 64)
		case "d":
			ids[i], err = strconv.ParseFloat(text, 64)
		case "b":
			ids[i], err = strconv.ParseBool(text)
		case "u":
			ids[i], err = uuid.Parse(text)
		default:
			err = errors.New("it is damaged")
		}
		if err != nil {
			return nil, err
		}
	}
	switch len(ids) {
	case 1:
		return ids[0], nil
	case 2:
		return ids, nil
	}
	return nil, errors.New("it is damaged")
}
