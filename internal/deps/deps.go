// Package deps pins the modules the rooms are built on.
package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/cespare/xxhash/v2"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/cockroachdb/pebble/v2"
	_ "github.com/cockroachdb/pebble/v2/bloom"
	_ "github.com/cockroachdb/pebble/v2/vfs"
	_ "github.com/gin-gonic/gin"
	_ "github.com/google/uuid"
	_ "github.com/gorilla/websocket"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/twmb/murmur3"
	_ "github.com/xdg-go/scram"
	_ "github.com/xdg-go/stringprep"
	_ "go.mongodb.org/mongo-driver/v2/bson"
	_ "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)
