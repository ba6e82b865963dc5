;; Bulk operations in loops: a text made from a segment, moved over itself, filled and compared
;; test: 3200
;; bench: 100000
(module
  (memory (export "memory") 1)
  (data $alphabet "abcdefghijklmnopqrstuvwxyz")

  ;; 64 pieces of 26 letters from 0 on.
  (func $write
    (local $i i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (i32.const 64)))
        (memory.init $alphabet (i32.mul (local.get $i) (i32.const 26)) (i32.const 0) (i32.const 26))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next))))

  ;; Opens a gap at a place, moves the rest up, fills the gap; then closes another one.
  (func $edit (param $at i32) (param $length i32)
    (memory.copy (i32.add (local.get $at) (local.get $length)) (local.get $at) (i32.sub (i32.const 4096) (local.get $at)))
    (memory.fill (local.get $at) (i32.add (i32.const 65) (local.get $length)) (local.get $length))
    (memory.copy (i32.shr_u (local.get $at) (i32.const 1))
      (i32.add (i32.shr_u (local.get $at) (i32.const 1)) (local.get $length)) (i32.const 4096)))

  (func $checksum (param $sum i64) (result i64)
    (local $at i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (i32.const 4096)))
        (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31)) (i64.load (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 8)))
        (br $next)))
    (local.get $sum))

  (func (export "run") (param $rounds i32) (result i64)
    (local $round i32) (local $sum i64)
    (memory.fill (i32.const 0) (i32.const 46) (i32.const 65536))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $round) (local.get $rounds)))
        (if (i32.eqz (i32.rem_u (local.get $round) (i32.const 16)))
          (then (call $write)))
        (call $edit (i32.rem_u (i32.mul (local.get $round) (i32.const 101)) (i32.const 4000))
          (i32.rem_u (local.get $round) (i32.const 23)))
        (local.set $sum (call $checksum (local.get $sum)))
        (local.set $round (i32.add (local.get $round) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
