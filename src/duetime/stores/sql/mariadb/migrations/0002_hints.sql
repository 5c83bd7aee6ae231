-- What processes tell each other: each writes to one of a few rows, over what it has told before.

CREATE TABLE IF NOT EXISTS {hints} (
    slot smallint NOT NULL PRIMARY KEY,
    told bigint NOT NULL,
    said longtext NOT NULL
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- That the work goes on elsewhere takes more room than a version of the code.
ALTER TABLE {meta} MODIFY code text NOT NULL;

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (2, 'hints', '{code}', unix_timestamp() * 1000000)
ON DUPLICATE KEY UPDATE version = 2;
