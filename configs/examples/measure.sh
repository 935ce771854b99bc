#!/bin/sh
# A command as a target: `greynic run CAMPAIGN --target 'exec:configs/examples/measure.sh' -o run.db`.
# It reads one request a line and answers each; docs/formats/exec.md has the protocol. This one measures
# nothing: put your own tool where the two numbers are made.
while read -r request; do
  id=$(printf '%s' "$request" | sed 's/^{"id":\([0-9]*\).*/\1/')
  echo "{\"id\":$id,\"bandwidth_gbps\":91.2,\"latency_us_p50\":3.1}"
done
