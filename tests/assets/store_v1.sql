BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE epoch (
	trial_id VARCHAR(64) NOT NULL, 
	epoch INTEGER NOT NULL, 
	tokens BIGINT NOT NULL, 
	train_loss DOUBLE NOT NULL, 
	valid_loss DOUBLE NOT NULL, 
	averaging BOOLEAN NOT NULL, 
	seconds DOUBLE NOT NULL, 
	CONSTRAINT pk_epoch PRIMARY KEY (trial_id, epoch), 
	CONSTRAINT fk_epoch_trial_id FOREIGN KEY(trial_id) REFERENCES trial (id)
);
INSERT INTO "epoch" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1',1,3000000000,3.33333333333333314829e-01,5.25,0,0.1);
INSERT INTO "epoch" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1',2,3000000000,3.33333333333333314829e-01,5.25,1,0.1);
INSERT INTO "epoch" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1',3,3000000000,3.33333333333333314829e-01,5.25,1,0.1);
INSERT INTO "epoch" VALUES('d20e2da0bc338d46bfea1f6acb3ddb8e32a7683cc7ffb486f709e822ebab3988',1,3000000000,3.33333333333333314829e-01,5.25,0,0.1);
INSERT INTO "epoch" VALUES('d20e2da0bc338d46bfea1f6acb3ddb8e32a7683cc7ffb486f709e822ebab3988',2,3000000000,3.33333333333333314829e-01,5.25,1,0.1);
INSERT INTO "epoch" VALUES('d20e2da0bc338d46bfea1f6acb3ddb8e32a7683cc7ffb486f709e822ebab3988',3,3000000000,3.33333333333333314829e-01,5.25,1,0.1);
CREATE TABLE result (
	trial_id VARCHAR(64) NOT NULL, 
	measurement TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	metrics TEXT NOT NULL, 
	run_id INTEGER NOT NULL, 
	recorded_at DATETIME NOT NULL, 
	CONSTRAINT pk_result PRIMARY KEY (trial_id, measurement, version), 
	CONSTRAINT fk_result_trial_id FOREIGN KEY(trial_id) REFERENCES trial (id), 
	CONSTRAINT fk_result_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "result" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1','perplexity',1,'{"kept_epoch":3,"test_perplexity":123.45678901234568}',1,'2026-11-21 07:26:05.903340');
INSERT INTO "result" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1','spectrum',1,'{"full":true,"method":"gram","press_rank":402}',1,'2026-11-21 07:26:05.903976');
CREATE TABLE run (
	id INTEGER NOT NULL, 
	code_version TEXT NOT NULL, 
	packages TEXT NOT NULL, 
	host TEXT NOT NULL, 
	device TEXT NOT NULL, 
	corpus_sha256 TEXT NOT NULL, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	CONSTRAINT pk_run PRIMARY KEY (id)
);
INSERT INTO "run" VALUES(1,'0.1.0','{"numpy":"2.4.6","torch":"2.13.0"}','a host','cpu','0000000000000000000000000000000000000000000000000000000000000000','2026-11-21 07:26:05.897559','2026-11-21 07:26:05.907999');
CREATE TABLE spectrum (
	trial_id VARCHAR(64) NOT NULL, 
	length INTEGER NOT NULL, 
	singular_values BLOB NOT NULL, 
	CONSTRAINT pk_spectrum PRIMARY KEY (trial_id), 
	CONSTRAINT ck_spectrum_length CHECK (length(singular_values) = 8 * length), 
	CONSTRAINT fk_spectrum_trial_id FOREIGN KEY(trial_id) REFERENCES trial (id)
);
INSERT INTO "spectrum" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1',5,X'000000000017E140000000000000F03F182D4454FB21094059F3F8C21F6EA5010000000000000000');
CREATE TABLE study (
	id INTEGER NOT NULL, 
	study TEXT NOT NULL, 
	scale TEXT NOT NULL, 
	corpus TEXT NOT NULL, 
	overrides TEXT NOT NULL, 
	planned_at DATETIME NOT NULL, 
	CONSTRAINT pk_study PRIMARY KEY (id), 
	CONSTRAINT uq_study_study_scale_corpus_overrides UNIQUE (study, scale, corpus, overrides)
);
INSERT INTO "study" VALUES(1,'gss_grid','quick','pydocs','{}','2026-11-21 07:26:05.890481');
CREATE TABLE study_trial (
	study_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	trial_id VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_study_trial PRIMARY KEY (study_id, position), 
	CONSTRAINT uq_study_trial_study_id_trial_id UNIQUE (study_id, trial_id), 
	CONSTRAINT fk_study_trial_study_id FOREIGN KEY(study_id) REFERENCES study (id), 
	CONSTRAINT fk_study_trial_trial_id FOREIGN KEY(trial_id) REFERENCES trial (id)
);
INSERT INTO "study_trial" VALUES(1,0,'0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1','trial 0');
INSERT INTO "study_trial" VALUES(1,1,'d20e2da0bc338d46bfea1f6acb3ddb8e32a7683cc7ffb486f709e822ebab3988','trial 1');
INSERT INTO "study_trial" VALUES(1,2,'e51015f8de4a00174da173cae861c78ae251cb02d02d52e0a4325e7894eb37cd','trial 2');
INSERT INTO "study_trial" VALUES(1,3,'7791dfc47d0175423145f4ae4caf387dfe873a28ff9d96198f1f0485792d6447','trial 3');
INSERT INTO "study_trial" VALUES(1,4,'00fd365534123dda285e94a1eed127ffd35906e2baa5a13cae4639b57c6dc8d5','trial 4');
CREATE TABLE trial (
	id VARCHAR(64) NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	attempt INTEGER NOT NULL, 
	owner TEXT, 
	lease_until DATETIME, 
	planned_at DATETIME NOT NULL, 
	started_at DATETIME, 
	ended_at DATETIME, 
	run_id INTEGER, 
	cause TEXT, 
	environment TEXT, 
	config TEXT NOT NULL, 
	CONSTRAINT pk_trial PRIMARY KEY (id), 
	CONSTRAINT ck_trial_state CHECK (state IN ('planned', 'running', 'done', 'diverged', 'failed', 'pruned')), 
	CONSTRAINT ck_trial_owner CHECK ((state = 'running') = (owner IS NOT NULL)), 
	CONSTRAINT ck_trial_lease CHECK ((owner IS NULL) = (lease_until IS NULL)), 
	CONSTRAINT ck_trial_attempt CHECK (attempt >= 0), 
	CONSTRAINT fk_trial_run_id FOREIGN KEY(run_id) REFERENCES run (id)
);
INSERT INTO "trial" VALUES('00fd365534123dda285e94a1eed127ffd35906e2baa5a13cae4639b57c6dc8d5','planned',0,NULL,NULL,'2026-11-21 07:26:05.890481',NULL,NULL,NULL,NULL,NULL,'{"group":"","output_layer":{"c":-1.5,"k":1e-07,"name":"gss"},"seed":4}');
INSERT INTO "trial" VALUES('0de032aea699a1bd85704781b98b3eaced38e59603943522f83e792132902ec1','done',1,NULL,NULL,'2026-11-21 07:26:05.890481','2026-11-21 07:26:05.898710','2026-11-21 07:26:05.904400',1,NULL,'{"device":"cpu","torch":"2.13.0"}','{"group":"","output_layer":{"c":-1.5,"k":1e-07,"name":"gss"},"seed":0}');
INSERT INTO "trial" VALUES('7791dfc47d0175423145f4ae4caf387dfe873a28ff9d96198f1f0485792d6447','running',1,'a driver','2026-11-21 07:36:05.898710','2026-11-21 07:26:05.890481','2026-11-21 07:26:05.898710',NULL,NULL,NULL,NULL,'{"group":"","output_layer":{"c":-1.5,"k":1e-07,"name":"gss"},"seed":3}');
INSERT INTO "trial" VALUES('d20e2da0bc338d46bfea1f6acb3ddb8e32a7683cc7ffb486f709e822ebab3988','diverged',1,NULL,NULL,'2026-11-21 07:26:05.890481','2026-11-21 07:26:05.898710','2026-11-21 07:26:05.906365',1,'the loss is not finite','{"device":"cpu","torch":"2.13.0"}','{"group":"","output_layer":{"c":-1.5,"k":1e-07,"name":"gss"},"seed":1}');
INSERT INTO "trial" VALUES('e51015f8de4a00174da173cae861c78ae251cb02d02d52e0a4325e7894eb37cd','failed',1,NULL,NULL,'2026-11-21 07:26:05.890481','2026-11-21 07:26:05.898710','2026-11-21 07:26:05.907306',1,'the worker died',NULL,'{"group":"","output_layer":{"c":-1.5,"k":1e-07,"name":"gss"},"seed":2}');
CREATE INDEX ix_trial_owner ON trial (owner);
COMMIT;
